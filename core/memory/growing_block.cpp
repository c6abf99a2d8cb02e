// SPDX-License-Identifier: MIT
#include "core/memory/growing_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace core {
namespace {

// Below this size a copy costs less than the page faults of a fresh mapping.
constexpr size_t kMappedBytesMin = size_t{32} << 20;
constexpr size_t kPageBytes = 4096;
constexpr size_t kCapacityMin = 256;

std::atomic<uint64_t> mapped_bytes{0};

bool is_mapped(size_t capacity_bytes) {
  return capacity_bytes >= kMappedBytesMin;
}

char* checked(void* memory) {
  if (memory == nullptr || memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(memory);
}

char* allocate(size_t size_bytes) {
  if (!is_mapped(size_bytes)) return checked(std::malloc(size_bytes));
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  return checked(::mmap(nullptr, size_bytes, kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void free_block(const GrowingBlock& block) {
  if (is_mapped(block.capacity_bytes)) {
    ::munmap(block.data, block.capacity_bytes);
  } else {
    std::free(block.data);
  }
}

char* move_block(const GrowingBlock& block, size_t capacity_bytes, size_t kept_bytes) {
  if (capacity_bytes == 0) {
    free_block(block);
    return nullptr;
  }
  const bool was_mapped = is_mapped(block.capacity_bytes);
  if (was_mapped && is_mapped(capacity_bytes)) {
    return checked(::mremap(block.data, block.capacity_bytes, capacity_bytes, MREMAP_MAYMOVE));
  }
  if (!was_mapped && !is_mapped(capacity_bytes)) {
    return checked(std::realloc(block.data, capacity_bytes));
  }
  char* const moved = allocate(capacity_bytes);
  if (kept_bytes > 0) std::memcpy(moved, block.data, kept_bytes);
  free_block(block);
  return moved;
}

uint64_t mapped_part(size_t capacity_bytes) {
  return is_mapped(capacity_bytes) ? capacity_bytes : 0;
}

}  // namespace

size_t next_capacity(const GrowingBlock& block, size_t needed_bytes) {
  // Growth of a mapping moves no bytes, so little extra capacity is needed.
  if (is_mapped(needed_bytes)) return needed_bytes + needed_bytes / 8;
  // Doubles the capacity, so that a byte is moved a constant number of times on average.
  return std::max({needed_bytes, block.capacity_bytes * 2, kCapacityMin});
}

GrowingBlock resize(const GrowingBlock& block, size_t capacity_bytes, size_t kept_bytes) {
  if (is_mapped(capacity_bytes)) {
    capacity_bytes = (capacity_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  const GrowingBlock resized{move_block(block, capacity_bytes, kept_bytes), capacity_bytes};
  mapped_bytes.fetch_add(mapped_part(capacity_bytes) - mapped_part(block.capacity_bytes),
                         std::memory_order_relaxed);
  return resized;
}

uint64_t growing_block_mapped_bytes() {
  return mapped_bytes.load(std::memory_order_relaxed);
}

}  // namespace core
