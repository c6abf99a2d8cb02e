// SPDX-License-Identifier: MIT
//
// PrivateMemory: zeroed memory for big bit arrays whose bits may be cleared, page by page as it is
// touched. Forked children see it as of the fork.
//
// What a fork costs: the kernel copies the page tables of touched pages, 8 bytes for each 4 KiB,
// and afterwards each page that the parent changes while the child lives.
//
// A page that was only read has no memory of its own, but counts as touched here, since the kernel
// does not tell. Where the kernel's page map cannot be read, all pages do. Huge pages are refused:
// an item would touch 2 MiB, and a fork copy as much.
//
// Thread safety: all members may be called from any thread; next_data() and data_end() also from
// forked children, and they take no lock.
// Source: mmap(2) about MAP_PRIVATE and MAP_NORESERVE, proc(5) about pagemap, mincore(2).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace core::bloom {

class PrivateMemory {
 public:
  static PrivateMemory& of_process();
  // `page_map` is the kernel's file of that name.
  explicit PrivateMemory(const char* page_map);

  // Page-aligned zeros; null when they cannot be had.
  void* map(uint64_t size_bytes);
  // REQUIRES: map(size_bytes) gave `memory`.
  void unmap(void* memory, uint64_t size_bytes);
  // Offset of the first byte at or behind `offset` whose page was touched, or size_bytes when none
  // was. REQUIRES: map() gave `memory`, of so many bytes at least; offset <= size_bytes.
  uint64_t next_data(const void* memory, uint64_t size_bytes, uint64_t offset) const;
  // Offset of a page's end up to which all pages from `offset` on were touched; there may be more.
  // REQUIRES: as above, and next_data() gave `offset`.
  uint64_t data_end(const void* memory, uint64_t size_bytes, uint64_t offset) const;

  // Bytes of all arrays, touched or not.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Bytes of this process' memory behind them, pages that were only read included. Asks for every
  // page: a few nanoseconds each.
  uint64_t resident_bytes() const;

 private:
  const char* page_map_;
  int owner_;  // process id
  std::atomic<uint64_t> reserved_bytes_{0};
  mutable std::mutex mutex_;  // guards what follows; never taken in a child
  std::map<void*, uint64_t> sizes_;
};

}  // namespace core::bloom
