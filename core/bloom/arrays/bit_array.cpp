// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/bit_array.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/bitmap.h"
#include "core/bloom/arrays/private_memory.h"
#include "core/memory/populate_pages.h"

namespace core::bloom {
namespace {

constexpr size_t kLineBytes = 64;

uint64_t* allocate_on_heap(size_t size_bytes) {
  // A layout that divides its array into cache lines needs an array that starts at a cache line. If
  // the size is not a multiple of a cache line, no such layout uses the array. Then calloc wastes
  // less memory than an aligned allocation.
  if (size_bytes % kLineBytes != 0) return static_cast<uint64_t*>(std::calloc(size_bytes, 1));
  void* memory = std::aligned_alloc(kLineBytes, size_bytes);
  if (memory == nullptr) return nullptr;
  populate_pages({static_cast<const std::byte*>(memory), size_bytes});
  std::memset(memory, 0, size_bytes);
  return static_cast<uint64_t*>(memory);
}

bool is_zero(std::span<const std::byte> bytes) {
  // The loop tests four words per step, which compilers turn into one vector instruction.
  constexpr size_t kStep = 4 * sizeof(uint64_t);
  while (bytes.size() >= kStep) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data(), kStep);
    if ((words[0] | words[1] | words[2] | words[3]) != 0) return false;
    bytes = bytes.subspan(kStep);
  }
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

void* map(size_t size_bytes, ArraySharing sharing) {
  return sharing == ArraySharing::kShared ? ArrayMemory::of_process().map(size_bytes)
                                          : PrivateMemory::of_process().map(size_bytes);
}

std::atomic<uint64_t> granted_bytes{0};

}  // namespace

uint64_t granted_array_bytes() {
  return granted_bytes.load(std::memory_order_relaxed);
}

BitArray::~BitArray() {
  if (words_ == nullptr) return;
  if (!is_mapped()) {
    std::free(words_);
  } else if (is_shared()) {
    ArrayMemory::of_process().unmap(words_, size_bytes());
  } else {
    PrivateMemory::of_process().unmap(words_, size_bytes());
  }
}

std::optional<BitArray> BitArray::allocate(uint64_t bit_count, ArraySharing sharing) {
  if (bit_count == 0 || bit_count > kMaxBits) return std::nullopt;
  BitArray array;
  array.extent_.bit_count = bit_count;
  const uint64_t size_bytes = array.size_bytes();
  array.extent_.is_mapped = size_bytes >= kMappedBytes;
  array.extent_.is_private = sharing == ArraySharing::kPrivate;
  array.words_ = array.is_mapped() ? static_cast<uint64_t*>(map(size_bytes, sharing))
                                   : allocate_on_heap(size_bytes);
  if (array.words_ == nullptr) return std::nullopt;
  granted_bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  return array;
}

std::optional<BitArray> BitArray::clone() const {
  auto copy =
      allocate(bit_count(), extent_.is_private ? ArraySharing::kPrivate : ArraySharing::kShared);
  if (!copy) return std::nullopt;
  visit_data(0, bytes().size(),
             [&](uint64_t offset, std::span<const std::byte> data) { copy->write(offset, data); });
  return copy;
}

uint64_t BitArray::next_data(uint64_t offset) const {
  const uint64_t end = bytes().size();
  if (!is_mapped()) return std::min(offset, end);
  const uint64_t next = is_shared()
                            ? ArrayMemory::of_process().next_data(words_, size_bytes(), offset)
                            : PrivateMemory::of_process().next_data(words_, size_bytes(), offset);
  return std::min(next, end);
}

uint64_t BitArray::data_end(uint64_t offset) const {
  if (!is_mapped()) return bytes().size();
  if (is_shared()) return ArrayMemory::of_process().data_end(words_, size_bytes(), offset);
  return PrivateMemory::of_process().data_end(words_, size_bytes(), offset);
}

bool BitArray::is_hole(uint64_t from, uint64_t to) const {
  if (!is_mapped()) return false;
  if (is_shared()) return next_data(from) >= to;
  // next_data() searches page by page up to the size that it is given. So it gets `to` as the size,
  // and does not search the pages after `to`.
  return PrivateMemory::of_process().next_data(words_, to, from) >= to;
}

void BitArray::write(uint64_t offset, std::span<const std::byte> source) {
  const std::span<std::byte> target = bytes().subspan(offset, source.size());
  size_t written = 0;  // bytes of `source` written or skipped
  const auto write_up_to = [&](size_t end) {
    const std::span<std::byte> run = target.subspan(written, end - written);
    if (is_mapped()) populate_pages(run);
    std::ranges::copy(source.subspan(written, run.size()), run.begin());
    written = end;
  };
  for (size_t start = 0; start < source.size();) {
    const size_t left_of_page = kArrayPageBytes - (offset + start) % kArrayPageBytes;
    const size_t end = std::min<size_t>(start + left_of_page, source.size());
    const bool stays_hole =
        is_zero(source.subspan(start, end - start)) && is_hole(offset + start, offset + end);
    if (stays_hole) {
      write_up_to(start);
      written = end;
    } else if (end - written >= kPopulatedBytesMax) {
      write_up_to(end);
    }
    start = end;
  }
  write_up_to(source.size());
}

bool BitArray::detach_from_children() {
  if (words_ == nullptr || !is_shared()) return true;
  auto copy = clone();
  if (!copy) return false;
  // ArrayMemory keeps the old array until the last child process that shares it has ended.
  *this = std::move(*copy);
  return true;
}

uint64_t BitArray::count_ones() const {
  return count_ones_in(0, bytes().size());
}

uint64_t BitArray::count_ones_in(uint64_t from, uint64_t to) const {
  uint64_t ones = 0;
  visit_data(from, to, [&ones](uint64_t /*offset*/, std::span<const std::byte> data) {
    ones += bitmap::count_bits({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  });
  return ones;
}

double BitArray::fill_ratio(uint64_t max_bytes) const {
  if (size_bytes() <= max_bytes) {
    return static_cast<double>(count_ones()) / static_cast<double>(bit_count());
  }
  const uint64_t byte_count = bytes().size();
  const uint64_t page_count = (byte_count + kArrayPageBytes - 1) / kArrayPageBytes;
  const uint64_t sample_count = std::clamp<uint64_t>(max_bytes / kArrayPageBytes, 1, page_count);
  // The distance between sampled pages is a double, because a product of integers could overflow.
  // Doubles represent all possible page counts exactly.
  const double step = static_cast<double>(page_count) / static_cast<double>(sample_count);
  uint64_t ones = 0;
  uint64_t bits = 0;
  for (uint64_t i = 0; i < sample_count; ++i) {
    const uint64_t start = static_cast<uint64_t>(static_cast<double>(i) * step) * kArrayPageBytes;
    const uint64_t end = std::min(start + kArrayPageBytes, byte_count);
    ones += count_ones_in(start, end);
    bits += std::min(end * 8, bit_count()) - start * 8;
  }
  return static_cast<double>(ones) / static_cast<double>(bits);
}

}  // namespace core::bloom
