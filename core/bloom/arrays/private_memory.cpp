// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/private_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <span>

#include "core/bloom/arrays/array_memory.h"

namespace core::bloom {
namespace {

constexpr uint64_t round_to_pages(uint64_t size_bytes) {
  return (size_bytes + kArrayPageBytes - 1) / kArrayPageBytes * kArrayPageBytes;
}

// Reads /proc/self/pagemap: one 64-bit word for each page of this process.
class PageMap {
 public:
  explicit PageMap(const char* path) {
    // The kernel accepts only reads of whole 8-byte words. Therefore the stream has no buffer, and
    // reads only the requested words.
    file_.rdbuf()->pubsetbuf(nullptr, 0);
    file_.open(path, std::ios::binary);
  }

  // Returns false if the page map cannot be read. REQUIRES: `page` is page-aligned.
  bool read(const std::byte* page, std::span<uint64_t> entries) {
    const uint64_t index = reinterpret_cast<uintptr_t>(page) / kArrayPageBytes;
    file_.seekg(static_cast<std::streamoff>(index * sizeof(uint64_t)));
    file_.read(reinterpret_cast<char*>(entries.data()),
               static_cast<std::streamsize>(entries.size_bytes()));
    return file_.good();
  }

  static bool is_touched(uint64_t entry) {
    constexpr uint64_t kPresent = uint64_t{1} << 63;
    constexpr uint64_t kSwapped = uint64_t{1} << 62;
    return (entry & (kPresent | kSwapped)) != 0;
  }

 private:
  std::ifstream file_;
};

constexpr size_t kPagesAtOnce = 512;
using Entries = std::array<uint64_t, kPagesAtOnce>;

}  // namespace

PrivateMemory& PrivateMemory::of_process() {
  // The PrivateMemory is never destroyed, because static arrays may be freed after all other static
  // objects.
  static PrivateMemory& memory = *new PrivateMemory("/proc/self/pagemap");
  return memory;
}

PrivateMemory::PrivateMemory(const char* page_map) : page_map_(page_map), owner_(::getpid()) {}

void* PrivateMemory::map(uint64_t size_bytes) {
  // A filter that is sized for years may be larger than the free memory, because its pages fill
  // slowly. MAP_NORESERVE lets the system accept such a size. The caller has checked MemoryBudget.
  void* const memory = ::mmap(nullptr, round_to_pages(size_bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, round_to_pages(size_bytes), MADV_NOHUGEPAGE);
  reserved_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  if (::getpid() == owner_) {
    const std::lock_guard guard(mutex_);
    sizes_[memory] = size_bytes;
  }
  return memory;
}

void PrivateMemory::unmap(void* memory, uint64_t size_bytes) {
  if (::getpid() == owner_) {
    const std::lock_guard guard(mutex_);
    sizes_.erase(memory);
  }
  ::munmap(memory, round_to_pages(size_bytes));
  // The counter is reduced only after munmap() has freed the pages. Until then the pages are in
  // use, and freeing many pages takes time.
  reserved_bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
}

uint64_t PrivateMemory::next_data(const void* memory, uint64_t size_bytes, uint64_t offset) const {
  PageMap page_map(page_map_);
  const auto* const start = static_cast<const std::byte*>(memory);
  Entries entries;
  // The first read of the page map covers only a few pages, because the next touched page is often
  // close.
  size_t count = 8;
  for (uint64_t page = offset / kArrayPageBytes * kArrayPageBytes; page < size_bytes;) {
    const uint64_t left = round_to_pages(size_bytes - page) / kArrayPageBytes;
    const auto asked = std::span(entries).first(std::min<uint64_t>(count, left));
    if (!page_map.read(start + page, asked)) return std::max(page, offset);
    const auto found = std::ranges::find_if(asked, PageMap::is_touched);
    page += static_cast<uint64_t>(found - asked.begin()) * kArrayPageBytes;
    if (found != asked.end()) return std::max(page, offset);
    count = kPagesAtOnce;
  }
  return size_bytes;
}

uint64_t PrivateMemory::data_end(const void* memory, uint64_t size_bytes, uint64_t offset) const {
  PageMap page_map(page_map_);
  const uint64_t page = offset / kArrayPageBytes * kArrayPageBytes;
  const uint64_t left = round_to_pages(size_bytes - page) / kArrayPageBytes;
  Entries entries;
  const auto asked = std::span(entries).first(std::min<uint64_t>(kPagesAtOnce, left));
  if (!page_map.read(static_cast<const std::byte*>(memory) + page, asked)) {
    return page + asked.size() * kArrayPageBytes;
  }
  const auto end = std::ranges::find_if_not(asked.subspan(1), PageMap::is_touched);
  return page + static_cast<uint64_t>(end - asked.begin()) * kArrayPageBytes;
}

uint64_t PrivateMemory::resident_bytes() const {
  constexpr size_t kPages = 4096;
  std::array<unsigned char, kPages> in_memory;
  uint64_t pages = 0;
  // Without the lock, another mapping could reuse the address of an array that is being unmapped.
  const std::lock_guard guard(mutex_);
  for (const auto& [memory, size_bytes] : sizes_) {
    for (uint64_t offset = 0; offset < size_bytes; offset += kPages * kArrayPageBytes) {
      const uint64_t asked =
          std::min(round_to_pages(size_bytes - offset), kPages * kArrayPageBytes);
      if (::mincore(static_cast<std::byte*>(memory) + offset, asked, in_memory.data()) != 0) break;
      const auto answers = std::span(in_memory).first(asked / kArrayPageBytes);
      pages += static_cast<uint64_t>(
          std::ranges::count_if(answers, [](unsigned char answer) { return (answer & 1) != 0; }));
    }
  }
  return pages * kArrayPageBytes;
}

}  // namespace core::bloom
