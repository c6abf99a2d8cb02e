// SPDX-License-Identifier: MIT
//
// ArrayMemory: zeroed memory for big bit arrays, in one sparse file that exists in memory only.
//
// A page that was read once looks like a page that was written once, to the processor and to
// forked children. The file alone knows which pages were never touched, so whoever passes over a
// whole array asks it, and leaves the untouched ones untouched.
//
// Invariants: each array has a range of the file of its own, which is never used again; between two
// ranges is a gap. The memory of a freed array goes back to the system when no forked child can
// read it any more. Only the process that made the file maps new ranges of it and frees them.
// Where such a file cannot be had (an old kernel, a limit on file sizes, strict overcommit), arrays
// are anonymous shared mappings and every page counts as touched.
// Thread safety: all members may be called from any thread; next_data() also from forked children,
// and it takes no lock.
// Source: memfd_create(2), lseek(2) about SEEK_DATA, madvise(2) about MADV_REMOVE.
#pragma once

#include <atomic>
#include <cstdint>
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

  // Bytes of all arrays, touched or not.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Bytes of memory behind them, whichever process touched them; freed arrays that a child may
  // still read included.
  uint64_t resident_bytes() const;
  // To be kept open in children; -1 when there is no file.
  int descriptor() const { return descriptor_; }

  // Begins before a fork, ends when the child has: freed arrays keep their bits meanwhile.
  class ChildGuard {
   public:
    ChildGuard() : memory_(&of_process()) { memory_->hold(); }
    explicit ChildGuard(ArrayMemory& memory) : memory_(&memory) { memory_->hold(); }
    ~ChildGuard() { memory_->release(); }
    ChildGuard(const ChildGuard&) = delete;
    ChildGuard& operator=(const ChildGuard&) = delete;

   private:
    ArrayMemory* memory_;
  };

 private:
  struct Tail;

  static Tail& tail_of(void* memory, uint64_t size_bytes);
  void give_back_or_keep(Tail& tail, uint64_t size_bytes);
  void* map_range(uint64_t mapped_bytes, int64_t& offset);
  void hold();
  void release();

  int descriptor_ = -1;
  uint64_t file_bytes_ = 0;
  int owner_;  // process id
  std::atomic<uint64_t> next_offset_{0};
  std::atomic<uint64_t> reserved_bytes_{0};
  std::atomic<uint64_t> anonymous_bytes_{0};
  std::mutex mutex_;       // guards what follows; never taken in a child
  unsigned children_ = 0;  // that may read freed arrays
  Tail* freed_ = nullptr;  // arrays that wait for them, linked by their tails
};

// Bytes of all mapped arrays of the process, PrivateMemory's included, touched or not. Callable
// from any thread.
uint64_t mapped_bytes();
// Bytes of memory behind them, as ArrayMemory and PrivateMemory count them.
uint64_t resident_array_bytes();

}  // namespace core::bloom
