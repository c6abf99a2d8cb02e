// SPDX-License-Identifier: MIT
//
// BitArray: zeroed bits that a layer owns, from the heap when small and from the kernel when big.
//
// Invariants: bits past bit_count() up to the next multiple of 64 exist and are zero. Arrays of
// kMappedBytes or more are mapped: they cost memory only as pages are touched. If they are shared,
// a child that saves the array sees a superset of its bits, and the parent copies no page. Of all
// others a child sees what they were at the fork. Members that deal with the whole array touch no
// page that was untouched, but for words() and bytes(), whose users see to that themselves.
// Thread safety: as for a plain array.
// Source: docs/bloom_math.md, "Memory".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/bloom/arrays/array_memory.h"

namespace core::bloom {

// Private arrays are for bits that may be cleared.
enum class ArraySharing : uint8_t { kShared, kPrivate };

class BitArray {
 public:
  static constexpr uint64_t kMappedBytes = uint64_t{1} << 20;
  // Far past any address space, and far from where sums of sizes would overflow.
  static constexpr uint64_t kMaxBits = uint64_t{1} << 55;

  BitArray() = default;
  BitArray(BitArray&& other) noexcept
      : words_(std::exchange(other.words_, nullptr)), extent_(std::exchange(other.extent_, {})) {}
  BitArray& operator=(BitArray&& other) noexcept {
    std::swap(words_, other.words_);
    std::swap(extent_, other.extent_);
    return *this;
  }
  ~BitArray();

  // Nothing when the memory cannot be had; bit_count is from 1 to kMaxBits, or nothing too.
  static std::optional<BitArray> allocate(uint64_t bit_count,
                                          ArraySharing sharing = ArraySharing::kShared);
  std::optional<BitArray> clone() const;
  // Moves the bits to memory that no child forked so far shares: children go on to see them as they
  // are now. False, and nothing has changed, when the memory cannot be had.
  bool detach_from_children();

  uint64_t bit_count() const { return extent_.bit_count; }
  uint64_t size_bytes() const { return (bit_count() + 63) / 64 * 8; }
  uint64_t count_ones() const;
  // Ones over bits. An array above max_bytes is sampled: whole pages, evenly spread, at most that
  // much and at least one. The same array gives the same figure.
  double fill_ratio(uint64_t max_bytes) const;

  uint64_t* words() { return words_; }
  const uint64_t* words() const { return words_; }
  // The bits as files hold them: bit x is bit x%8 of byte x/8.
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(words_), (bit_count() + 7) / 8};
  }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(words_), (bit_count() + 7) / 8};
  }

  // Whether pages may be untouched.
  bool is_mapped() const { return extent_.is_mapped; }
  // Whether children share it.
  bool is_shared() const { return extent_.is_mapped && !extent_.is_private; }
  // Offset in bytes() of the first byte at or behind `offset` whose page was touched; from there
  // back to `offset` all is zero. The size of bytes() when no such page follows.
  uint64_t next_data(uint64_t offset) const;
  // Calls visit(offset, bytes) for what lies in touched pages of [from, to), page by page and in
  // order: what it passes over is zero. A forked child may see pages that are being touched.
  template <class Visitor>
  void visit_data(uint64_t from, uint64_t to, Visitor&& visit) const {
    for (uint64_t start = next_data(from); start < to; start = next_data(start)) {
      const uint64_t data_end = std::min(this->data_end(start), to);
      while (start < data_end) {
        const uint64_t page_end = start / kArrayPageBytes * kArrayPageBytes + kArrayPageBytes;
        const uint64_t end = std::min(page_end, data_end);
        visit(start, bytes().subspan(start, end - start));
        start = end;
      }
    }
  }
  // Overwrites bytes()[offset, offset + source.size()); zeros leave untouched pages untouched.
  void write(uint64_t offset, std::span<const std::byte> source);

 private:
  // One word: ten thousand small filters must not pay for flags.
  struct Extent {
    bool is_mapped : 1 = false;
    bool is_private : 1 = false;
    uint64_t bit_count : 62 = 0;  // above the flags: a line count is one shift away
  };

  uint64_t count_ones_in(uint64_t from, uint64_t to) const;
  uint64_t data_end(uint64_t offset) const;
  // Whether no page of [from, to) was touched.
  bool is_hole(uint64_t from, uint64_t to) const;

  uint64_t* words_ = nullptr;
  Extent extent_;
};

// Bytes of all arrays that were ever made, whether they are gone or not. Callable from any thread.
uint64_t granted_array_bytes();

}  // namespace core::bloom
