// SPDX-License-Identifier: MIT
#include "core/memory/populate_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace core {

void populate_pages(std::span<const std::byte> range) {
  constexpr uintptr_t kPageBytes = 4096;
#ifdef MADV_POPULATE_WRITE
  constexpr int kAdvice = MADV_POPULATE_WRITE;
#else
  constexpr int kAdvice = 23;
#endif
  if (range.size() < kPopulatedBytesMin) return;
  const auto start = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t begin = (start + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uintptr_t end = (start + range.size()) / kPageBytes * kPageBytes;
  // Errors are ignored, because the first write to a page allocates the page if it is missing.
  ::madvise(reinterpret_cast<void*>(begin), end - begin, kAdvice);
}

}  // namespace core
