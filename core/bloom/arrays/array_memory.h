// SPDX-License-Identifier: MIT
//
// ArrayMemory: zeroed memory for big bit arrays, in one sparse file that exists in memory only.
//
// A page that was read once looks like a page that was written once, to the processor and to
// forked children. The file alone knows which pages were never touched, so whoever passes over a
// whole array asks it, and leaves the untouched ones untouched.
//
// Invariants: each array has a range of the file of its own, which is never used again; between two
// ranges is a gap. A freed array stays in memory only while a forked child lives that may read it.
// The fork of such a child came after the array was mapped and before it was freed. Only the
// process that made the file maps new ranges of it and frees them.
// Where such a file cannot be had, arrays are anonymous shared mappings and every page counts as
// touched. Reasons are an old kernel, a limit on file sizes, and strict overcommit.
// Thread safety: all members may be called from any thread; next_data() also from forked children,
// and it takes no lock.
// Source: memfd_create(2), lseek(2) about SEEK_DATA, madvise(2) about MADV_REMOVE.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>

namespace core::bloom {

inline constexpr uint64_t kArrayPageBytes = 4096;

class ArrayMemory {
 public:
  // More than any machine has, and far from where offsets end.
  static constexpr uint64_t kFileBytesMax = uint64_t{1} << 62;

  static ArrayMemory& of_process();
  // A file of at most so many bytes, or of what the system allows; with 0 there is none.
  explicit ArrayMemory(uint64_t file_bytes_max);
  ~ArrayMemory();
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  // Page-aligned zeros that forked children share; null when they cannot be had.
  void* map(uint64_t size_bytes);
  // REQUIRES: map(size_bytes) gave `memory`.
  void unmap(void* memory, uint64_t size_bytes);
  // Offset of the first byte at or behind `offset` whose page was touched, or size_bytes when none
  // was. REQUIRES: map(size_bytes) gave `memory`; offset <= size_bytes.
  uint64_t next_data(const void* memory, uint64_t size_bytes, uint64_t offset) const;
  // Offset of a page's end up to which all pages from `offset` on were touched; there may be more.
  // REQUIRES: as above, and next_data() gave `offset`.
  uint64_t data_end(const void* memory, uint64_t size_bytes, uint64_t offset) const;

  // Bytes of all arrays that were not freed, touched or not.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Bytes of freed arrays that stay because a child may read them.
  uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }
  // Bytes of memory behind both, whichever process touched them.
  uint64_t resident_bytes() const;
  // To be kept open in children; -1 when there is no file.
  int descriptor() const { return descriptor_; }

  class ChildGuard;

 private:
  struct Tail;
  // A forked child. The two counts are values of events_: the child's fork lies between them.
  struct Child {
    uint64_t begin;
    uint64_t end = std::numeric_limits<uint64_t>::max();  // until the fork has returned
  };
  using Children = std::list<Child>;

  static Tail& tail_of(void* memory, uint64_t size_bytes);
  void give_back_or_keep(Tail& tail, uint64_t size_bytes);
  // Whether some child may read the array. REQUIRES: mutex_.
  bool is_visible(const Tail& tail) const;
  void* map_range(uint64_t mapped_bytes, int64_t& offset);
  Children::iterator hold();
  void finish_fork(Children::iterator child);
  void release(Children::iterator child);

  int descriptor_ = -1;
  uint64_t file_bytes_ = 0;
  int owner_;  // process id
  std::atomic<uint64_t> next_offset_{0};
  std::atomic<uint64_t> reserved_bytes_{0};
  std::atomic<uint64_t> kept_bytes_{0};
  std::atomic<uint64_t> anonymous_bytes_{0};
  // Counts the begin and the end of each fork, so that mappings, forks and frees have an order.
  std::atomic<uint64_t> events_{0};
  std::mutex mutex_;       // guards what follows; never taken in a child
  Children children_;      // that live
  Tail* freed_ = nullptr;  // arrays that wait for them, linked by their tails
};

// Belongs to one forked child: begins before the fork and ends when the child has ended. Arrays
// that the child may read keep their bits meanwhile.
class ArrayMemory::ChildGuard {
 public:
  explicit ChildGuard(ArrayMemory& memory = of_process())
      : memory_(&memory), child_(memory.hold()) {}
  ~ChildGuard() { memory_->release(child_); }
  ChildGuard(const ChildGuard&) = delete;
  ChildGuard& operator=(const ChildGuard&) = delete;

  // To be called when the fork has returned: the child sees no array that is mapped from now on.
  void finish_fork() { memory_->finish_fork(child_); }

 private:
  ArrayMemory* memory_;
  Children::iterator child_;
};

// Bytes of all mapped arrays of the process that were not freed, PrivateMemory's included, touched
// or not. Callable from any thread.
uint64_t mapped_bytes();
// Bytes of freed arrays that stay because a forked child may read them.
uint64_t kept_array_bytes();
// Bytes of memory behind them, as ArrayMemory and PrivateMemory count them.
uint64_t resident_array_bytes();

}  // namespace core::bloom
