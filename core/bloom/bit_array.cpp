// SPDX-License-Identifier: MIT
#include "core/bloom/bit_array.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/bitmap/bitmap.h"

namespace core::bloom {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kPageWords = 4096 / sizeof(uint64_t);

uint64_t* allocate_small(size_t size_bytes) {
  // Whole cache lines must not straddle two; calloc is kinder to the odd sizes of other layouts.
  if (size_bytes % kLineBytes != 0) return static_cast<uint64_t*>(std::calloc(size_bytes, 1));
  void* memory = std::aligned_alloc(kLineBytes, size_bytes);
  if (memory != nullptr) std::memset(memory, 0, size_bytes);
  return static_cast<uint64_t*>(memory);
}

uint64_t count_ones_of(std::span<const uint64_t> words) {
  return bitmap::count_bits({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
}

std::atomic<uint64_t> mapped_total{0};

uint64_t* map_big(size_t size_bytes) {
  // NORESERVE: a filter sized for years may exceed what is free today; MemoryBudget has been asked.
  void* memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  mapped_total.fetch_add(size_bytes, std::memory_order_relaxed);
  return static_cast<uint64_t*>(memory);
}

}  // namespace

BitArray::~BitArray() {
  if (words_ == nullptr) return;
  if (size_bytes() >= kMappedBytes) {
    ::munmap(words_, size_bytes());
    mapped_total.fetch_sub(size_bytes(), std::memory_order_relaxed);
  } else {
    std::free(words_);
  }
}

std::optional<BitArray> BitArray::allocate(uint64_t bit_count) {
  if (bit_count == 0 || bit_count > kMaxBits) return std::nullopt;
  BitArray array(nullptr, bit_count);
  const uint64_t size_bytes = array.size_bytes();
  array.words_ = size_bytes >= kMappedBytes ? map_big(size_bytes) : allocate_small(size_bytes);
  if (array.words_ == nullptr) return std::nullopt;
  return array;
}

std::optional<BitArray> BitArray::clone() const {
  auto copy = allocate(bit_count_);
  if (!copy) return std::nullopt;
  const uint64_t word_count = size_bytes() / sizeof(uint64_t);
  for (uint64_t start = 0; start < word_count; start += kPageWords) {
    const uint64_t* const from = words_ + start;
    const size_t length = std::min<uint64_t>(kPageWords, word_count - start);
    // A page of zeros is left untouched, so the copy of a sparse array is sparse.
    const bool is_zero = std::all_of(from, from + length, [](uint64_t word) { return word == 0; });
    if (!is_zero) std::memcpy(copy->words_ + start, from, length * sizeof(uint64_t));
  }
  return copy;
}

uint64_t mapped_bytes() {
  return mapped_total.load(std::memory_order_relaxed);
}

uint64_t BitArray::count_ones() const {
  return count_ones_of({words_, size_bytes() / sizeof(uint64_t)});
}

double BitArray::fill_ratio(uint64_t max_bytes) const {
  if (size_bytes() <= max_bytes) {
    return static_cast<double>(count_ones()) / static_cast<double>(bit_count_);
  }
  const uint64_t word_count = size_bytes() / sizeof(uint64_t);
  const uint64_t page_count = (word_count + kPageWords - 1) / kPageWords;
  const uint64_t sample_count =
      std::clamp<uint64_t>(max_bytes / (kPageWords * sizeof(uint64_t)), 1, page_count);
  // In doubles, where the product cannot overflow; they are exact far past any page count.
  const double step = static_cast<double>(page_count) / static_cast<double>(sample_count);
  uint64_t ones = 0;
  uint64_t bits = 0;
  for (uint64_t i = 0; i < sample_count; ++i) {
    const uint64_t start = static_cast<uint64_t>(static_cast<double>(i) * step) * kPageWords;
    const uint64_t length = std::min<uint64_t>(kPageWords, word_count - start);
    ones += count_ones_of({words_ + start, length});
    bits += std::min((start + length) * 64, bit_count_) - start * 64;
  }
  return static_cast<double>(ones) / static_cast<double>(bits);
}

}  // namespace core::bloom
