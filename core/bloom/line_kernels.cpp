// SPDX-License-Identifier: MIT
#include "core/bloom/line_kernels.h"

#include "core/bloom/line_walk.h"

namespace core::bloom {
namespace {

class PortableLine {
 public:
  PortableLine() = default;
  explicit PortableLine(const Geometry& geometry) : bits_per_line_(bits_per_line(geometry)) {}

  bool all_set(const uint64_t* words, uint64_t positions) const {
    uint64_t all = 1;
    // No early exit inside a line: its bits are in the cache, a wrong branch costs more.
    for (unsigned bit = 0; bit < bits_per_line_; ++bit, positions >>= 9) {
      all &= words[(positions >> 6) & 7] >> (positions & 63);
    }
    return (all & 1) != 0;
  }

  struct Pattern {
    explicit Pattern(uint64_t item_positions) : positions(item_positions) {}
    uint64_t positions;
  };
  bool all_set(const uint64_t* words, const Pattern& pattern) const {
    return all_set(words, pattern.positions);
  }

  bool set(uint64_t* words, uint64_t positions) const {
    uint64_t newly_set = 0;
    for (unsigned bit = 0; bit < bits_per_line_; ++bit, positions >>= 9) {
      uint64_t& word = words[(positions >> 6) & 7];
      const uint64_t mask = uint64_t{1} << (positions & 63);
      newly_set |= ~word & mask;
      word |= mask;
    }
    return newly_set != 0;
  }

 private:
  unsigned bits_per_line_ = 0;
};

bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return check_item<PortableLine>(words, geometry, hash);
}

bool mark(uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return mark_item<PortableLine>(words, geometry, hash);
}

void check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                 std::span<bool> found) {
  check_items<PortableLine>(arrays, hashes, found);
}

}  // namespace

const LineKernels& portable_line_kernels() {
  static constexpr LineKernels kKernels{check, mark, check_group};
  return kKernels;
}

}  // namespace core::bloom
