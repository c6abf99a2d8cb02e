// SPDX-License-Identifier: MIT
//
// PrivateMemory: zeroed memory for big bit arrays whose bits may be cleared. A page takes memory
// when it is first touched. Forked children see the memory as it was at the fork.
//
// Cost of a fork: the kernel copies the page tables of touched pages, 8 bytes for each 4 KiB. Later
// it copies each page that the parent changes while the child lives.
//
// A page that was only read has no memory of its own. Such a page counts as touched, because the
// kernel does not distinguish it from a page that was written. If the kernel's page map cannot be
// read, all pages count as touched. Huge pages are disabled: with them, adding one item could take
// 2 MiB, and one write while a child process lives could copy 2 MiB.
//
// Thread safety: all members may be called from any thread. next_data() and data_end() may also be
// called from forked children, and take no lock.
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
  // `page_map` is the path of the page map, normally /proc/self/pagemap.
  explicit PrivateMemory(const char* page_map);

  // Returns page-aligned zeroed memory, or null if the allocation fails.
  void* map(uint64_t size_bytes);
  // REQUIRES: `memory` came from map(size_bytes).
  void unmap(void* memory, uint64_t size_bytes);
  // Returns the offset of the first byte at or after `offset` whose page was touched; size_bytes if
  // there is no such page. REQUIRES: `memory` came from map() of at least size_bytes; offset <=
  // size_bytes.
  uint64_t next_data(const void* memory, uint64_t size_bytes, uint64_t offset) const;
  // Returns the end of a range of touched pages that begins at `offset`. One call examines a
  // limited number of pages, so the page after the returned end may be touched too. REQUIRES:
  // next_data() with the same array returned `offset`.
  uint64_t data_end(const void* memory, uint64_t size_bytes, uint64_t offset) const;

  // Bytes of all arrays that are not freed, including untouched pages.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Resident bytes of all mapped arrays in this process, including pages that were only read.
  // Queries every page, which costs a few nanoseconds per page.
  uint64_t resident_bytes() const;

 private:
  const char* page_map_;
  int owner_;  // id of the process that created this object
  std::atomic<uint64_t> reserved_bytes_{0};
  mutable std::mutex mutex_;  // guards sizes_; never locked in a child process
  std::map<void*, uint64_t> sizes_;
};

}  // namespace core::bloom
