// SPDX-License-Identifier: MIT
//
// ArrayMemory: zeroed memory for big bit arrays, in one sparse file that exists in memory only.
//
// Reading an untouched page of a file in memory allocates the page, like a write. So code that
// walks a whole array asks the file which pages were touched, and does not access the others.
//
// Invariants: each array has its own range of the file, which is never reused; a gap separates two
// ranges. After an array is freed, its memory is kept only while a forked child that may read the
// array is alive. Such a child was forked after the array was mapped and before it was freed. Only
// the process that created the file maps new ranges of it and frees them.
// Arrays of HugePages::kArrayBytesMin and more begin at multiples of 2 MiB, so that HugePages can
// move them. All other arrays, and those of a forked child, keep small pages.
// If the file cannot be created, arrays are anonymous shared mappings and every page counts as
// touched. Possible causes are an old kernel, a limit on file sizes, and strict overcommit.
// Thread safety: all members may be called from any thread. next_data() and data_end() may also be
// called from forked children, and take no lock.
// Source: memfd_create(2), lseek(2) about SEEK_DATA, madvise(2) about MADV_REMOVE.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>

namespace core::bloom {

class HugePages;

inline constexpr uint64_t kArrayPageBytes = 4096;

class ArrayMemory {
 public:
  // Maximum size of the file. It is larger than any machine's memory, and small enough that offsets
  // cannot overflow.
  static constexpr uint64_t kFileBytesMax = uint64_t{1} << 62;

  static ArrayMemory& of_process();
  // The file holds at most `file_bytes_max` bytes, or fewer if the system limits file sizes. With 0
  // no file is created. `huge_pages` may be null, and must exist as long as the ArrayMemory.
  explicit ArrayMemory(uint64_t file_bytes_max, HugePages* huge_pages = nullptr);
  ~ArrayMemory();
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  // Returns page-aligned zeroed memory that forked children share, or null if the allocation fails.
  void* map(uint64_t size_bytes);
  // REQUIRES: `memory` came from map(size_bytes).
  void unmap(void* memory, uint64_t size_bytes);
  // Returns the offset of the first byte at or after `offset` whose page was touched; size_bytes if
  // there is no such page. REQUIRES: `memory` came from map(size_bytes); offset <= size_bytes.
  uint64_t next_data(const void* memory, uint64_t size_bytes, uint64_t offset) const;
  // Returns the end of a range of touched pages that begins at `offset`. The page after the
  // returned end may be touched too. REQUIRES: next_data() with the same array returned `offset`.
  uint64_t data_end(const void* memory, uint64_t size_bytes, uint64_t offset) const;

  // Bytes of all arrays that are not freed, including untouched pages.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Bytes of freed arrays that stay in memory because a forked child may read them.
  uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }
  // Resident bytes of all mapped arrays, whichever process touched the pages.
  uint64_t resident_bytes() const;
  // File descriptor, which children must keep open; -1 if there is no file.
  int descriptor() const { return descriptor_; }

  class ChildGuard;

 private:
  struct Tail;
  // A forked child. A counter of events increases by one before and after each fork(). Each array
  // records the counter's values when it was mapped and freed. Comparing these values with `begin`
  // and `end` shows whether the array may have existed during this child's fork().
  struct Child {
    uint64_t begin;  // value of the counter before the fork() of this child
    // Value of the counter after that fork() returned. Until then, the largest uint64_t.
    uint64_t end = std::numeric_limits<uint64_t>::max();
  };
  using Children = std::list<Child>;

  static Tail& tail_of(void* memory, uint64_t size_bytes);
  // Maps a range of the file at a multiple of 2 MiB. Returns MAP_FAILED if that fails.
  void* map_aligned(uint64_t mapped_bytes, int64_t offset);
  void give_back(Tail& tail);
  void give_back_or_keep(Tail& tail, uint64_t size_bytes);
  // True if a living child may read the array. REQUIRES: mutex_ is held.
  bool is_visible(const Tail& tail) const;
  void* map_range(uint64_t mapped_bytes, int64_t& offset);
  Children::iterator hold();
  void finish_fork(Children::iterator child);
  void release(Children::iterator child);

  int descriptor_ = -1;
  uint64_t file_bytes_ = 0;
  int owner_;  // id of the process that created the file
  std::atomic<uint64_t> next_offset_{0};
  std::atomic<uint64_t> reserved_bytes_{0};
  std::atomic<uint64_t> kept_bytes_{0};
  std::atomic<uint64_t> anonymous_bytes_{0};
  // The number of times that a fork has begun or ended. It serves as a clock: its values show
  // whether an array was mapped or freed before, during or after a fork.
  std::atomic<uint64_t> events_{0};
  std::mutex mutex_;             // guards children_ and freed_; never locked in a child process
  Children children_;            // child processes that are alive
  Tail* freed_ = nullptr;        // linked list of freed arrays that living children might read
  HugePages* const huge_pages_;  // moves big arrays into huge pages; null in some tests
};

// Tracks one forked child. The guard is created before the fork and destroyed when the child has
// ended. While it exists, the memory of arrays that the child may read is not freed.
class ArrayMemory::ChildGuard {
 public:
  explicit ChildGuard(ArrayMemory& memory = of_process())
      : memory_(&memory), child_(memory.hold()) {}
  ~ChildGuard() { memory_->release(child_); }
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;

  // Must be called after fork() has returned. The child cannot see arrays mapped after this call.
  void finish_fork() { memory_->finish_fork(child_); }

 private:
  ArrayMemory* memory_;
  Children::iterator child_;
};

// Returns the bytes of all arrays of the process that are not freed. Includes untouched pages, and
// the arrays of PrivateMemory. Thread-safe.
uint64_t mapped_bytes();
// Bytes of freed arrays that stay in memory because a forked child may read them.
uint64_t kept_array_bytes();
// Resident bytes of all mapped arrays, as ArrayMemory and PrivateMemory count them.
uint64_t resident_array_bytes();

}  // namespace core::bloom
