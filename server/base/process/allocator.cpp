// SPDX-License-Identifier: MIT
#include "server/base/process/allocator.h"

#ifdef BLOOMERY_JEMALLOC
#include <fmt/format.h>
#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <atomic>

#include "core/memory/thread_heap.h"
#elif defined(BLOOMERY_ASAN) || defined(BLOOMERY_TSAN)
#include <cstddef>
// The sanitizers have an allocator of their own, and no header declares the functions that return
// its statistics.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
extern "C" size_t __sanitizer_get_heap_size();
#else
#include <malloc.h>
#endif

namespace server {

#ifdef BLOOMERY_JEMALLOC

namespace {

uint64_t figure(const char* name) {
  size_t value = 0;
  size_t size = sizeof value;
  return mallctl(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

// Bytes in use that core::counted_heap_bytes() does not include, modulo 2^64.
std::atomic<uint64_t> uncounted_bytes{0};

}  // namespace

AllocatorFigures allocator_figures() {
  // The statistics of jemalloc date from the last epoch. Setting the epoch updates them.
  uint64_t epoch = 1;
  size_t size = sizeof epoch;
  mallctl("epoch", &epoch, &size, &epoch, size);
  return {figure("stats.allocated"), figure("stats.active"), figure("stats.resident")};
}

uint64_t heap_bytes() {
  const auto bytes = static_cast<int64_t>(core::counted_heap_bytes() + uncounted_bytes.load());
  return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
}

void correct_heap_bytes() {
  static const std::string kCached =
      fmt::format("stats.arenas.{}.tcache_bytes", MALLCTL_ARENAS_ALL);
  const uint64_t counted = core::counted_heap_bytes();
  const uint64_t allocated = allocator_figures().allocated_bytes;
  const uint64_t in_use = allocated - std::min(allocated, figure(kCached.c_str()));
  // If another thread has allocated or freed memory since `counted` was read, `in_use` does not
  // match `counted`, and neither is used.
  if (core::counted_heap_bytes() == counted) uncounted_bytes = in_use - counted;
}

std::string allocator_name() {
  const std::string version = JEMALLOC_VERSION;
  // Removes the suffix of the version, which names the commit that jemalloc was built from.
  return "jemalloc-" + version.substr(0, version.find('-'));
}

void purge_allocator() {
  const std::string name = fmt::format("arena.{}.purge", MALLCTL_ARENAS_ALL);
  mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}

std::string allocator_report() {
  std::string report;
  const auto append = [](void* out, const char* text) {
    static_cast<std::string*>(out)->append(text);
  };
  malloc_stats_print(append, &report, nullptr);
  return report;
}

#else

std::string allocator_report() {
  return {};
}

uint64_t heap_bytes() {
  return allocator_figures().allocated_bytes;
}

void correct_heap_bytes() {}

#if defined(BLOOMERY_ASAN) || defined(BLOOMERY_TSAN)

AllocatorFigures allocator_figures() {
  const uint64_t allocated = __sanitizer_get_current_allocated_bytes();
  return {allocated, allocated, __sanitizer_get_heap_size()};
}

std::string allocator_name() {
  return "sanitizer";
}

void purge_allocator() {}

#else

AllocatorFigures allocator_figures() {
  const struct mallinfo2 info = mallinfo2();
  const uint64_t allocated = info.uordblks + info.hblkhd;
  return {allocated, allocated, info.arena + info.hblkhd};
}

std::string allocator_name() {
  return "libc";
}

void purge_allocator() {
  malloc_trim(0);
}

#endif

#endif

}  // namespace server
