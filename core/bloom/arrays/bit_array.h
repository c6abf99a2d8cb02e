// SPDX-License-Identifier: MIT
//
// BitArray: the bits that a layer owns, all zero at first. A small array is on the heap, a big
// array is a separate mapping.
//
// Invariants: the bits after bit_count() up to the next multiple of 64 exist and are zero. Arrays
// of kMappedBytes or more are mapped: they cost memory only for touched pages. A child process that
// saves a shared array sees all bits that the array had at the fork, and possibly later ones. The
// parent process copies no page of a shared array. A child process sees any other array as it was
// at the fork. Members that work on the whole array leave untouched pages untouched. The exceptions
// are words() and bytes(): their callers must avoid access to untouched pages.
// Thread safety: reads may run in parallel. A write needs exclusive access to the words that it
// changes; detach_from_children() needs exclusive access to the array.
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

// kPrivate is for arrays whose bits may be cleared. kShared arrays share their memory with forked
// child processes.
enum class ArraySharing : uint8_t { kShared, kPrivate };

class BitArray {
 public:
  static constexpr uint64_t kMappedBytes = uint64_t{1} << 20;
  // Maximum number of bits of an array. No machine has an array of this size (4 PiB), and sums of
  // sizes below it cannot overflow.
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

  // Returns nullopt if the allocation fails, or if bit_count is not in [1, kMaxBits].
  static std::optional<BitArray> allocate(uint64_t bit_count,
                                          ArraySharing sharing = ArraySharing::kShared);
  std::optional<BitArray> clone() const;
  // Moves the bits to memory that no existing child process shares. Child processes keep seeing the
  // bits as they are now. Returns false, with nothing changed, if the allocation fails.
  bool detach_from_children();

  uint64_t bit_count() const { return extent_.bit_count; }
  uint64_t size_bytes() const { return (bit_count() + 63) / 64 * 8; }
  uint64_t count_ones() const;
  // Returns the set bits as a fraction of all bits. In an array larger than max_bytes, evenly
  // spaced whole pages are sampled: at most max_bytes, at least one page. The result is
  // deterministic.
  double fill_ratio(uint64_t max_bytes) const;

  uint64_t* words() { return words_; }
  const uint64_t* words() const { return words_; }
  // The bits as they are stored in files: bit x is bit x%8 of byte x/8.
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(words_), (bit_count() + 7) / 8};
  }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(words_), (bit_count() + 7) / 8};
  }

  // True if some pages may be untouched.
  bool is_mapped() const { return extent_.is_mapped; }
  // True if forked children share the array.
  bool is_shared() const { return extent_.is_mapped && !extent_.is_private; }
  // Offset in bytes() of the first byte at or after `offset` whose page was touched; all bytes
  // between are zero. Returns the size of bytes() if no such page follows.
  uint64_t next_data(uint64_t offset) const;
  // Returns the end of the touched pages that begin at `offset`, or an earlier end of a page.
  // REQUIRES: next_data(offset) == offset.
  uint64_t data_end(uint64_t offset) const;
  // Calls visit(offset, bytes) for the touched pages of [from, to), page by page and in order;
  // skipped bytes are zero. In a forked child it may also visit pages that the parent is touching.
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
  // Overwrites bytes()[offset, offset + source.size()). Zeros are not written to pages that were
  // never touched, so these pages still use no memory.
  void write(uint64_t offset, std::span<const std::byte> source);

 private:
  // Bit count and flags share one word, because separate flags would enlarge each of many small
  // filters.
  struct Extent {
    bool is_mapped : 1 = false;
    bool is_private : 1 = false;
    // The bit count is in the upper bits of the word. So one right shift both removes the flags and
    // divides the count by the line size.
    uint64_t bit_count : 62 = 0;
  };

  uint64_t count_ones_in(uint64_t from, uint64_t to) const;
  // True if no page of [from, to) was touched.
  bool is_hole(uint64_t from, uint64_t to) const;

  uint64_t* words_ = nullptr;
  Extent extent_;
};

// Sum of the sizes of all arrays ever created, including destroyed arrays. Thread-safe.
uint64_t granted_array_bytes();

}  // namespace core::bloom
