// SPDX-License-Identifier: MIT
//
// BitArray: zeroed bits that a layer owns, from the heap when small and from the kernel when big.
//
// Invariants: bits past bit_count() up to the next multiple of 64 exist and are zero. Arrays of
// kMappedBytes or more are anonymous mappings that cost memory only as pages are touched, and are
// shared with forked children: a child that saves the array sees a superset of its bits, and the
// parent copies no page.
// Thread safety: as for a plain array.
// Source: docs/bloom_math.md, "Memory".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace core::bloom {

class BitArray {
 public:
  static constexpr uint64_t kMappedBytes = uint64_t{1} << 20;
  // Far past any address space, and far from where sums of sizes would overflow.
  static constexpr uint64_t kMaxBits = uint64_t{1} << 55;

  BitArray() = default;
  BitArray(BitArray&& other) noexcept
      : words_(std::exchange(other.words_, nullptr)),
        bit_count_(std::exchange(other.bit_count_, 0)) {}
  BitArray& operator=(BitArray&& other) noexcept {
    std::swap(words_, other.words_);
    std::swap(bit_count_, other.bit_count_);
    return *this;
  }
  ~BitArray();

  // Nothing when the memory cannot be had; bit_count is from 1 to kMaxBits, or nothing too.
  static std::optional<BitArray> allocate(uint64_t bit_count);
  std::optional<BitArray> clone() const;

  uint64_t bit_count() const { return bit_count_; }
  uint64_t size_bytes() const { return (bit_count_ + 63) / 64 * 8; }
  uint64_t count_ones() const;
  // Ones over bits. An array above max_bytes is sampled: whole pages, evenly spread, at most that
  // much and at least one. Pages and not lines, because reading an untouched page makes it cost
  // memory. The same array gives the same figure.
  double fill_ratio(uint64_t max_bytes) const;

  uint64_t* words() { return words_; }
  const uint64_t* words() const { return words_; }
  // The bits as files hold them: bit x is bit x%8 of byte x/8.
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(words_), (bit_count_ + 7) / 8};
  }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(words_), (bit_count_ + 7) / 8};
  }

 private:
  BitArray(uint64_t* words, uint64_t bit_count) : words_(words), bit_count_(bit_count) {}

  uint64_t* words_ = nullptr;
  uint64_t bit_count_ = 0;
};

// Bytes of all mapped arrays of the process, touched or not. Callable from any thread.
uint64_t mapped_bytes();

}  // namespace core::bloom
