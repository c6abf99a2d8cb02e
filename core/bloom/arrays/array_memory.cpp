// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/array_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <new>
#include <utility>

#include "core/bloom/arrays/huge_pages.h"
#include "core/bloom/arrays/private_memory.h"

namespace core::bloom {
namespace {

constexpr int64_t kNoOffset = -1;
// Ranges start at multiples of 2 MiB, as huge pages require. The pages of the gap between two
// ranges are never touched.
constexpr uint64_t kRangeAlignment = HugePages::kPieceBytes;

uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

// With strict overcommit the memory file is not used, because the kernel reserves no memory for it
// in advance. The first write to a page would kill the process if no memory is left. For an
// anonymous mapping the kernel reserves memory, so mmap() fails instead.
bool is_overcommit_strict() {
  constexpr int kNever = 2;
  int mode = 0;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> mode;
  return mode == kNever;
}

int make_file(uint64_t size_bytes) {
  // The value of MFD_NOEXEC_SEAL, a flag of Linux 6.3 and later. Some of these kernels refuse to
  // create a file without the flag.
  constexpr unsigned kNoExecSeal = 8;
  constexpr const char* kName = "bloomery-arrays";
  int descriptor = ::memfd_create(kName, MFD_CLOEXEC | kNoExecSeal);
  if (descriptor < 0 && errno == EINVAL) descriptor = ::memfd_create(kName, MFD_CLOEXEC);
  if (descriptor < 0) return -1;
  if (::ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

// A record at the end of each mapping, after the array's last byte. It is not part of BitArray
// because most arrays are small and are not mapped.
struct ArrayMemory::Tail {
  int64_t offset;         // offset of the array's range in the file, or kNoOffset
  uint64_t mapped_bytes;  // size of the mapping, including this tail
  uint64_t mapped_at;     // count of fork events when the array was mapped
  uint64_t freed_at;      // count of fork events when the array was freed
  uint64_t size_bytes;
  Tail* next_freed;

  std::byte* memory() { return reinterpret_cast<std::byte*>(this + 1) - mapped_bytes; }
};

ArrayMemory& ArrayMemory::of_process() {
  // The ArrayMemory is never destroyed, because the destructors of other static objects may free
  // arrays.
  static ArrayMemory& memory =
      *new ArrayMemory(is_overcommit_strict() ? 0 : kFileBytesMax, &HugePages::of_process());
  return memory;
}

ArrayMemory::ArrayMemory(uint64_t file_bytes_max, HugePages* huge_pages)
    : owner_(::getpid()), huge_pages_(huge_pages) {
  // A write beyond RLIMIT_FSIZE would end the process by SIGXFSZ, so the file is not larger than
  // this limit. Arrays that do not fit in the file become anonymous mappings.
  struct rlimit limit {};
  const bool is_known = ::getrlimit(RLIMIT_FSIZE, &limit) == 0;
  file_bytes_ = std::min<uint64_t>(file_bytes_max, is_known ? limit.rlim_cur : 0);
  if (file_bytes_ > 0) descriptor_ = make_file(file_bytes_);
  if (descriptor_ < 0) file_bytes_ = 0;
}

ArrayMemory::~ArrayMemory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ArrayMemory::Tail& ArrayMemory::tail_of(void* memory, uint64_t size_bytes) {
  const uint64_t mapped_bytes = round_up(size_bytes + sizeof(Tail), kArrayPageBytes);
  return reinterpret_cast<Tail*>(static_cast<std::byte*>(memory) + mapped_bytes)[-1];
}

void* ArrayMemory::map_range(uint64_t mapped_bytes, int64_t& offset) {
  // A child process has its own copy of next_offset_, so its ranges would overlap later ranges of
  // the parent. Therefore a child process maps no range of the file.
  if (descriptor_ < 0 || ::getpid() != owner_) return MAP_FAILED;
  const uint64_t step = round_up(mapped_bytes + 1, kRangeAlignment);
  uint64_t start = next_offset_.load(std::memory_order_relaxed);
  do {
    if (step > file_bytes_ - start) return MAP_FAILED;
  } while (!next_offset_.compare_exchange_weak(start, start + step, std::memory_order_relaxed));
  offset = static_cast<int64_t>(start);
  const bool is_big = huge_pages_ != nullptr && mapped_bytes >= HugePages::kArrayBytesMin;
  void* memory = is_big ? map_aligned(mapped_bytes, offset) : MAP_FAILED;
  if (memory == MAP_FAILED) {
    memory = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    descriptor_, offset);
  }
  if (memory == MAP_FAILED) {
    // After a failed mmap() the reserved range of the file becomes available for another array.
    uint64_t end = start + step;
    next_offset_.compare_exchange_strong(end, start, std::memory_order_relaxed);
  }
  return memory;
}

void* ArrayMemory::map_aligned(uint64_t mapped_bytes, int64_t offset) {
  // Reserves 2 MiB of addresses more than the array needs. Maps the file at the first multiple of
  // 2 MiB in the reserved range.
  const uint64_t reserved_bytes = mapped_bytes + HugePages::kPieceBytes;
  void* const reserved = ::mmap(nullptr, reserved_bytes, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(reserved);
  const auto address = reinterpret_cast<uintptr_t>(reserved);
  const uint64_t skipped_bytes = round_up(address, HugePages::kPieceBytes) - address;
  std::byte* const start = begin + skipped_bytes;
  void* const memory = ::mmap(start, mapped_bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor_, offset);
  if (memory == MAP_FAILED) {
    ::munmap(reserved, reserved_bytes);
    return MAP_FAILED;
  }
  if (skipped_bytes > 0) ::munmap(begin, skipped_bytes);
  ::munmap(start + mapped_bytes, HugePages::kPieceBytes - skipped_bytes);
  huge_pages_->add(start, mapped_bytes);
  return memory;
}

void* ArrayMemory::map(uint64_t size_bytes) {
  const uint64_t mapped_bytes = round_up(size_bytes + sizeof(Tail), kArrayPageBytes);
  // A child process that is forked during mmap() may see the array. events_ counts the starts and
  // ends of forks, and is read before mmap(). So if a fork ends after mmap() began, the fork's end
  // has a higher number than `mapped_at`. is_visible() then treats the array as visible to the
  // child.
  const uint64_t mapped_at = events_.load();
  int64_t offset = kNoOffset;
  // MAP_NORESERVE: the kernel reserves no memory for pages that are not touched yet. The caller has
  // checked the size against a MemoryBudget.
  void* memory = map_range(mapped_bytes, offset);
  if (memory == MAP_FAILED) {
    offset = kNoOffset;
    // Arrays that a forked child creates are used by no other process, so they need not be shared.
    // With MAP_PRIVATE, pages that the child only reads take no memory.
    const int sharing = ::getpid() == owner_ ? MAP_SHARED : MAP_PRIVATE;
    memory = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                    sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    anonymous_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  }
  new (&tail_of(memory, size_bytes)) Tail{offset, mapped_bytes, mapped_at, 0, size_bytes, nullptr};
  reserved_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  return memory;
}

void ArrayMemory::unmap(void* memory, uint64_t size_bytes) {
  give_back_or_keep(tail_of(memory, size_bytes), size_bytes);
  // If this thread frees the pages, the counter is reduced only afterwards. Until then the pages
  // are in use, and freeing many pages takes time. An array that is kept, or freed later, no longer
  // counts here.
  reserved_bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
}

void ArrayMemory::give_back_or_keep(Tail& tail, uint64_t size_bytes) {
  const bool is_in_file = tail.offset != kNoOffset;
  if (!is_in_file) anonymous_bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
  // A forked child only unmaps the array, because the parent process still uses the array's pages
  // in the file. An anonymous array has no pages in the file.
  if (!is_in_file || ::getpid() != owner_) {
    ::munmap(tail.memory(), tail.mapped_bytes);
    return;
  }
  if (huge_pages_ != nullptr) huge_pages_->remove(tail.memory());
  {
    const std::lock_guard guard(mutex_);
    tail.freed_at = events_.load();
    if (is_visible(tail)) {
      kept_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
      tail.next_freed = std::exchange(freed_, &tail);
      return;
    }
  }
  give_back(tail);
}

void ArrayMemory::give_back(Tail& tail) {
  std::byte* const start = tail.memory();
  // While the kernel collapses a piece of the array, the array must stay mapped. So that this
  // thread need not wait, HugePages::step() frees the array after the collapse.
  if (huge_pages_ != nullptr && huge_pages_->defer_free(start)) return;
  free_file_range(start, tail.mapped_bytes);
}

bool ArrayMemory::is_visible(const Tail& tail) const {
  return std::ranges::any_of(children_, [&tail](const Child& child) {
    return tail.mapped_at < child.end && child.begin <= tail.freed_at;
  });
}

uint64_t ArrayMemory::next_data(const void* memory, uint64_t size_bytes, uint64_t offset) const {
  const int64_t start = tail_of(const_cast<void*>(memory), size_bytes).offset;
  if (start == kNoOffset || offset >= size_bytes) return offset;
  // lseek() moves a file position that children share. No code relies on that position.
  const off_t found = ::lseek(descriptor_, start + static_cast<int64_t>(offset), SEEK_DATA);
  if (found >= 0) return std::min(static_cast<uint64_t>(found - start), size_bytes);
  // ENXIO means that no data follows. On any other error the byte at `offset` counts as data.
  return errno == ENXIO ? size_bytes : offset;
}

uint64_t ArrayMemory::data_end(const void* memory, uint64_t size_bytes, uint64_t offset) const {
  // mincore() queries many pages at once. One call per page would cost about as much as copying the
  // page.
  constexpr size_t kPagesAtOnce = 32;
  const uint64_t page = offset / kArrayPageBytes * kArrayPageBytes;
  const uint64_t all_bytes = round_up(size_bytes, kArrayPageBytes);
  const uint64_t asked_bytes = std::min(kPagesAtOnce * kArrayPageBytes, all_bytes - page);
  std::array<unsigned char, kPagesAtOnce> in_memory{};
  auto* const start = static_cast<std::byte*>(const_cast<void*>(memory)) + page;
  // mincore() reports swapped-out pages as absent; next_data() finds these pages.
  if (::mincore(start, asked_bytes, in_memory.data()) != 0) return page + kArrayPageBytes;
  size_t pages = 1;
  while (pages < asked_bytes / kArrayPageBytes && (in_memory[pages] & 1) != 0) ++pages;
  return page + pages * kArrayPageBytes;
}

uint64_t ArrayMemory::resident_bytes() const {
  constexpr uint64_t kBlockBytes = 512;
  struct stat status {};
  const bool is_known = descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0;
  const uint64_t in_file = is_known ? static_cast<uint64_t>(status.st_blocks) * kBlockBytes : 0;
  return in_file + anonymous_bytes_.load(std::memory_order_relaxed);
}

ArrayMemory::Children::iterator ArrayMemory::hold() {
  const std::lock_guard guard(mutex_);
  return children_.insert(children_.end(), Child{.begin = ++events_});
}

void ArrayMemory::finish_fork(Children::iterator child) {
  const std::lock_guard guard(mutex_);
  child->end = ++events_;
}

void ArrayMemory::release(Children::iterator child) {
  Tail* unseen = nullptr;
  {
    const std::lock_guard guard(mutex_);
    children_.erase(child);
    Tail** link = &freed_;
    while (*link != nullptr) {
      Tail* const tail = *link;
      if (is_visible(*tail)) {
        link = &tail->next_freed;
        continue;
      }
      *link = tail->next_freed;
      tail->next_freed = std::exchange(unseen, tail);
    }
  }
  while (unseen != nullptr) {
    Tail* const tail = std::exchange(unseen, unseen->next_freed);
    const uint64_t size_bytes = tail->size_bytes;
    give_back(*tail);
    // The counter is reduced only after the pages were freed. Until then they are in use, and
    // freeing many pages takes time.
    kept_bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
  }
}

uint64_t mapped_bytes() {
  return ArrayMemory::of_process().reserved_bytes() + PrivateMemory::of_process().reserved_bytes();
}

uint64_t kept_array_bytes() {
  return ArrayMemory::of_process().kept_bytes();
}

uint64_t resident_array_bytes() {
  return ArrayMemory::of_process().resident_bytes() + PrivateMemory::of_process().resident_bytes();
}

}  // namespace core::bloom
