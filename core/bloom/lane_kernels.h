// SPDX-License-Identifier: MIT
//
// The inner loops of the lane layout, in portable C++ and for each instruction set with which they
// are measurably faster. One vector holds all bits that an item has in a line. The implementation
// is chosen before main() starts.
//
// Invariants: all kernels read and write the same bits and return the same results; a fuzzer and
// lane_kernels_test compare them.
// Thread safety: as for LineKernels.
// Source: docs/bloom_math.md, "Lanes" and "Measured".
#pragma once

#include <cstdint>
#include <span>

#include "core/bloom/hash.h"
#include "core/bloom/line_kernels.h"
#include "core/fast_range.h"

namespace core::bloom {

// Iterates over the lines of one item. For each line it computes the index of the first word, and a
// hash that determines the item's bits in this line.
class LaneWalk {
 public:
  LaneWalk(ItemHash hash, LineShape shape) : place_(hash.first), line_count_(shape.line_count) {}

  // Index of the current line's first word.
  uint64_t word_index() const { return fast_range(place_, line_count_) * 8; }
  // Returns 64 bits that determine the item's bits in the current line. The high half gives the
  // positions in the lanes. The highest four bits of the low half select the set of lanes.
  // fast_range() selects the line by the highest bits of place_. Both halves also depend on the
  // lower bits, so two items in one line usually have different bits.
  uint64_t positions() const { return place_ * 0xD6E8FEB86659FD93; }
  void advance() { place_ *= 0xF1357AEA2E62A9C5; }

 private:
  uint64_t place_;
  uint64_t line_count_;
};

// Returns the index within the line of the item's bit in `lane`. The item has a bit there only if
// `lane` is in its set of lanes.
uint32_t lane_bit(uint64_t positions, unsigned lane);
// Rotation of the item's set of lanes.
inline unsigned lane_rotation(uint64_t positions) {
  return static_cast<uint32_t>(positions) >> 28;
}

const LineKernels& portable_lane_kernels();
// The kernels that the processor supports, the portable ones first and the best ones last.
std::span<const LineKernels* const> supported_lane_kernels();
const LineKernels& lane_kernels();

// These functions do the same for a single item as the members of lane_kernels(), but without a
// call through a function pointer.
bool check_lane_item(const uint64_t* words, LineShape shape, ItemHash hash);
bool check_lane_item_in_any(std::span<const Layer> layers, ItemHash hash);
bool mark_lane_item(uint64_t* words, LineShape shape, ItemHash hash);

}  // namespace core::bloom
