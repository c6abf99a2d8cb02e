// SPDX-License-Identifier: MIT
#include "server/base/process/memory_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "core/bloom/arrays/bit_array.h"
#include "core/keyspace/reclaimer.h"
#include "core/memory/growing_block.h"
#include "core/memory/thread_heap.h"
#include "server/base/process/allocator.h"

namespace server {
namespace {

// Returns the bytes in a "Name:   123 kB" line of a file in /proc; 0 if the line is missing.
uint64_t bytes_in(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    uint64_t kibibytes = 0;
    if (word == name && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

MemoryMonitor::MemoryMonitor() : machine_bytes_(bytes_in("/proc/meminfo", "MemTotal:")) {
  core::count_thread_heap();
  correct_heap_bytes();
  startup_bytes_ = refresh();
}

MemoryMonitor::Parts MemoryMonitor::parts() const {
  Parts parts{.heap_bytes = heap_bytes(),
              .array_bytes = core::bloom::mapped_bytes(),
              .kept_array_bytes = core::bloom::kept_array_bytes(),
              .buffer_bytes = core::growing_block_mapped_bytes()};
  // The bytes of values that wait to be freed are read last, because they are subtracted from the
  // heap's bytes. If they were read first, a value freed before heap_bytes() would be subtracted
  // twice.
  if (reclaimer_ != nullptr) parts.pending_bytes = reclaimer_->pending_bytes();
  if (exempt_bytes_) parts.exempt_bytes = exempt_bytes_();
  return parts;
}

MemoryMonitor::Parts MemoryMonitor::measure() const {
  const Parts parts = this->parts();
  const uint64_t used = parts.used();
  used_bytes_.store(used, std::memory_order_relaxed);
  uint64_t peak = peak_bytes();
  while (used > peak && !peak_bytes_.compare_exchange_weak(peak, used)) {
  }
  return parts;
}

bool MemoryMonitor::may_have_grown(uint64_t limit) const {
  const Look& last = last_look();
  if (last.monitor != this || last.limit_bytes != limit) return true;
  const auto own_bytes = core::thread_heap_bytes();
  if (!own_bytes || last.allowed_growth_bytes == 0) return true;
  const auto growth = static_cast<int64_t>(*own_bytes - last.heap_bytes);
  return growth >= static_cast<int64_t>(last.allowed_growth_bytes);
}

bool MemoryMonitor::look(uint64_t limit, uint64_t extra_bytes) const {
  const uint64_t reserved_bytes = extra_bytes == 0 ? 0 : reserved_by_others();
  const uint64_t limited = measure().limited();
  const uint64_t left = limit - std::min(limit, limited);
  // Each thread may allocate its share of the remaining memory before it measures used memory
  // again. Near the limit these shares are small, so all threads measure often.
  const uint64_t share =
      std::min(kUnseenBytesMax, left / 2) / std::max<uint64_t>(core::counted_thread_count(), 1);
  last_look() = {this, limit, core::thread_heap_bytes().value_or(0), share};
  return limited > limit || extra_bytes + reserved_bytes > left;
}

void MemoryMonitor::tick() const {
  correct_heap_bytes();
  measure_available();
}

uint64_t MemoryMonitor::measure_available() const {
  // The total size of all arrays ever made is read before the parts of used memory are measured.
  // Arrays that are created in between then count twice rather than not at all.
  const uint64_t granted = core::bloom::granted_array_bytes();
  const Parts parts = measure();
  uint64_t available = std::numeric_limits<uint64_t>::max() - granted;
  if (const uint64_t limit = limit_bytes(); limit != 0) {
    available = limit - std::min(limit, parts.limited());
  }
  available = std::min(available, free_of_machine(parts.used()));
  granted_max_.store(granted + available, std::memory_order_relaxed);
  granted_until_.store(granted + available / kPartPerMeasurement, std::memory_order_relaxed);
  return available;
}

uint64_t MemoryMonitor::free_of_machine(uint64_t used_bytes) const {
  const uint64_t free = free_machine_bytes();
  // The system counts untouched pages of mapped filters as free, but adds may touch them at any
  // time. `used_bytes` includes these pages, so it must also fit into the machine's memory.
  if (machine_bytes_ == 0) return free;
  return std::min(free, machine_bytes_ - std::min(machine_bytes_, used_bytes));
}

uint64_t MemoryMonitor::obtainable_bytes() const {
  const uint64_t available = measure_available();
  if (room_maker_ == nullptr) return available;
  const uint64_t obtainable = room_maker_->obtainable_bytes();
  if (obtainable <= available) return available;
  return std::max(available, std::min(obtainable, free_of_machine(used_bytes())));
}

uint64_t MemoryMonitor::available_bytes() const {
  const uint64_t granted = core::bloom::granted_array_bytes();
  if (granted >= granted_until_.load(std::memory_order_relaxed)) return measure_available();
  const uint64_t granted_max = granted_max_.load(std::memory_order_relaxed);
  return granted_max > granted ? granted_max - granted : 0;
}

bool MemoryMonitor::fits(uint64_t bytes) const {
  if (bytes <= available_bytes() || bytes <= measure_available()) return true;
  return room_maker_ != nullptr && bytes <= free_of_machine(used_bytes()) &&
         room_maker_->make_room_for(bytes);
}

ResidentMemory resident_memory() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  file >> size >> resident >> shared;
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {resident * page_bytes, shared * page_bytes, bytes_in("/proc/self/status", "RssFile:")};
}

uint64_t free_machine_bytes() {
  const uint64_t free = bytes_in("/proc/meminfo", "MemAvailable:");
  return free != 0 ? free : std::numeric_limits<uint64_t>::max();
}

}  // namespace server
