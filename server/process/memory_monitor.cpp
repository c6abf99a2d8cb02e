// SPDX-License-Identifier: MIT
#include "server/process/memory_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "core/bloom/arrays/bit_array.h"
#include "core/keyspace/reclaimer.h"
#include "server/process/allocator.h"

namespace server {
namespace {

// A "Name:   123 kB" line of /proc/meminfo in bytes; 0 when it is missing.
uint64_t meminfo_bytes(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    uint64_t kibibytes = 0;
    if (word == name && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

MemoryMonitor::MemoryMonitor()
    : machine_bytes_(meminfo_bytes("MemTotal:")), startup_bytes_(refresh()) {}

uint64_t MemoryMonitor::refresh() const {
  const uint64_t held = allocator_figures().allocated_bytes + core::bloom::mapped_bytes();
  // Read last: memory freed in between counts as used, not twice as free.
  const uint64_t pending = reclaimer_ != nullptr ? reclaimer_->pending_bytes() : 0;
  const uint64_t used = held - std::min(held, pending);
  used_bytes_.store(used, std::memory_order_relaxed);
  uint64_t peak = peak_bytes();
  while (used > peak && !peak_bytes_.compare_exchange_weak(peak, used)) {
  }
  return used;
}

uint64_t MemoryMonitor::measure_available() const {
  // Read first: arrays made meanwhile count twice rather than not at all.
  const uint64_t granted = core::bloom::granted_array_bytes();
  const uint64_t used = refresh();
  uint64_t available = std::numeric_limits<uint64_t>::max() - granted;
  const auto left_of = [used](uint64_t total) { return total > used ? total - used : 0; };
  if (const uint64_t limit = limit_bytes(); limit != 0) available = left_of(limit);
  // Mapped filters are promised memory even while untouched, so the machine's size counts too.
  if (machine_bytes_ != 0) available = std::min(available, left_of(machine_bytes_));
  if (const uint64_t free = meminfo_bytes("MemAvailable:"); free != 0) {
    available = std::min(available, free);
  }
  granted_max_.store(granted + available, std::memory_order_relaxed);
  granted_until_.store(granted + available / kPartPerMeasurement, std::memory_order_relaxed);
  return available;
}

uint64_t MemoryMonitor::available_bytes() const {
  const uint64_t granted = core::bloom::granted_array_bytes();
  if (granted >= granted_until_.load(std::memory_order_relaxed)) return measure_available();
  const uint64_t granted_max = granted_max_.load(std::memory_order_relaxed);
  return granted_max > granted ? granted_max - granted : 0;
}

bool MemoryMonitor::fits(uint64_t bytes) const {
  return bytes <= available_bytes() || bytes <= measure_available();
}

ResidentMemory resident_memory() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  file >> size >> resident >> shared;
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {resident * page_bytes, shared * page_bytes};
}

uint64_t free_machine_bytes() {
  const uint64_t free = meminfo_bytes("MemAvailable:");
  return free != 0 ? free : std::numeric_limits<uint64_t>::max();
}

}  // namespace server
