// SPDX-License-Identifier: MIT
//
// GrowingBlock: memory for bytes that are appended. A block of many megabytes is a separate
// mapping, which grows without a copy. An allocator that copies would hold the bytes twice during
// the copy.
//
// Invariants: growth does not fill the new bytes with zeros. The caller owns the memory, and frees
// it by a resize to 0.
// Thread safety: a block belongs to one thread; growing_block_mapped_bytes() may be called from any
// thread.
// Source: mremap(2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace core {

struct GrowingBlock {
  char* data = nullptr;
  size_t capacity_bytes = 0;
};

// The capacity to request if `needed_bytes` do not fit into the block.
size_t next_capacity(const GrowingBlock& block, size_t needed_bytes);
// Replaces the block by one of at least `capacity_bytes`. The first `kept_bytes` keep their
// content. Throws std::bad_alloc, which leaves the block unchanged. REQUIRES: kept_bytes is at most
// the old and the new capacity.
GrowingBlock resize(const GrowingBlock& block, size_t capacity_bytes, size_t kept_bytes);

// Returns the total size of the blocks that were allocated by mmap(), including their unused bytes.
// The allocator does not count these bytes.
uint64_t growing_block_mapped_bytes();

}  // namespace core
