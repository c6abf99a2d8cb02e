// SPDX-License-Identifier: MIT
//
// GrowingBlock: memory for bytes that are appended. A block of many megabytes is a mapping of its
// own, which grows without a copy. An allocator that copies would hold the bytes twice meanwhile.
//
// Invariants: growth never fills with zeros. The caller owns the memory and gives it back by a
// resize to 0.
// Thread safety: a block belongs to one thread; growing_block_mapped_bytes() from any thread.
// Source: mremap(2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace core {

struct GrowingBlock {
  char* data = nullptr;
  size_t capacity_bytes = 0;
};

// The capacity to ask for when `needed_bytes` do not fit into the block.
size_t next_capacity(const GrowingBlock& block, size_t needed_bytes);
// A block of at least `capacity_bytes` instead of this one; the first `kept_bytes` keep their
// content. Throws std::bad_alloc, which leaves the block as it was. REQUIRES: kept_bytes <= both
// capacities.
GrowingBlock resize(const GrowingBlock& block, size_t capacity_bytes, size_t kept_bytes);

// Memory of all blocks that are mappings, used or not. The allocator does not count it.
uint64_t growing_block_mapped_bytes();

}  // namespace core
