// SPDX-License-Identifier: MIT
#include "server/process/allocator.h"

#ifdef BLOOMERY_JEMALLOC
#include <fmt/format.h>
#include <jemalloc/jemalloc.h>
#elif defined(BLOOMERY_ASAN) || defined(BLOOMERY_TSAN)
#include <cstddef>
// The sanitizers bring an allocator of their own; the compiler has no header for its figures.
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

}  // namespace

AllocatorFigures allocator_figures() {
  // Statistics are of the last epoch; setting it starts a new one.
  uint64_t epoch = 1;
  size_t size = sizeof epoch;
  mallctl("epoch", &epoch, &size, &epoch, size);
  return {figure("stats.allocated"), figure("stats.active"), figure("stats.resident")};
}

void flush_thread_cache() {
  mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
}

std::string allocator_name() {
  const std::string version = JEMALLOC_VERSION;
  // A suffix names the commit it was built from.
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

void flush_thread_cache() {}

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
