// SPDX-License-Identifier: MIT
//
// Writes the section memory of INFO.
#include <array>

#include "core/bloom/arrays/array_memory.h"
#include "core/bloom/arrays/huge_pages.h"
#include "core/keyspace/reclaimer.h"
#include "server/base/config/config.h"
#include "server/base/process/allocator.h"
#include "server/base/process/memory_monitor.h"
#include "server/commands/info/memory_figures.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"

namespace server::info {
namespace {

void write_allocator(const MemoryFigures& figures, Lines& lines) {
  const AllocatorFigures& allocator = figures.allocator;
  const uint64_t resident = figures.resident.total_bytes;
  lines.ratio("allocator_frag_ratio", ratio_of(allocator.active_bytes, allocator.allocated_bytes));
  lines.field("allocator_frag_bytes",
              signed_difference(allocator.active_bytes, allocator.allocated_bytes));
  lines.ratio("allocator_rss_ratio", ratio_of(allocator.resident_bytes, allocator.active_bytes));
  lines.field("allocator_rss_bytes",
              signed_difference(allocator.resident_bytes, allocator.active_bytes));
  lines.ratio("rss_overhead_ratio", ratio_of(resident, allocator.resident_bytes));
  lines.field("rss_overhead_bytes", signed_difference(resident, allocator.resident_bytes));
  lines.ratio("mem_fragmentation_ratio", ratio_of(resident, figures.used_bytes));
  lines.field("mem_fragmentation_bytes", signed_difference(resident, figures.used_bytes));
}

}  // namespace

std::string human_bytes(uint64_t value) {
  constexpr std::array<char, 6> kUnits{'B', 'K', 'M', 'G', 'T', 'P'};
  if (value < 1024) return fmt::format("{}B", value);
  auto scaled = static_cast<double>(value);
  size_t unit = 0;
  while (scaled >= 1024 && unit + 1 < kUnits.size()) {
    scaled /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f}{}", scaled, kUnits[unit]);
}

void Lines::bytes(std::string_view name, uint64_t value) {
  field(name, value);
  field(fmt::format("{}_human", name), human_bytes(value));
}

void write_memory(const Source& source, Lines& lines) {
  const MemoryMonitor& memory = source.services.memory;
  const MemoryFigures figures = measure_memory(source.services, source.locking);
  const AllocatorFigures& allocator = figures.allocator;
  const uint64_t used = figures.used_bytes;
  lines.bytes("used_memory", used);
  lines.bytes("used_memory_rss", figures.resident.total_bytes);
  lines.bytes("used_memory_peak", figures.peak_bytes);
  lines.percent("used_memory_peak_perc", 100 * ratio_of(used, figures.peak_bytes));
  lines.field("used_memory_overhead", figures.overhead_bytes());
  lines.field("used_memory_startup", figures.startup_bytes);
  lines.field("used_memory_dataset", figures.dataset_bytes());
  lines.percent("used_memory_dataset_perc",
                100 * ratio_of(figures.dataset_bytes(), figures.grown_bytes()));
  lines.field("allocator_allocated", allocator.allocated_bytes);
  lines.field("allocator_active", allocator.active_bytes);
  lines.field("allocator_resident", allocator.resident_bytes);
  lines.bytes("total_system_memory", memory.machine_bytes());
  // Redis' memory of scripts and functions is 0, because Bloomery has neither.
  lines.bytes("used_memory_lua", 0);
  lines.zeros({"used_memory_vm_eval", "used_memory_scripts_eval", "number_of_cached_scripts",
               "number_of_functions", "number_of_libraries", "used_memory_vm_functions"});
  lines.bytes("used_memory_vm_total", 0);
  lines.zeros({"used_memory_functions"});
  lines.bytes("used_memory_scripts", 0);
  lines.bytes("maxmemory", memory.limit_bytes());
  lines.field("maxmemory_policy", source.services.config.text(OptionId::kMaxMemoryPolicy));
  write_allocator(figures, lines);
  lines.field("mem_not_counted_for_evict", used - figures.parts.evictable());
  lines.field("mem_replication_backlog", figures.backlog_bytes);
  lines.field("mem_total_replication_buffers",
              figures.backlog_bytes + figures.stream_replica_bytes);
  lines.field("mem_clients_slaves", figures.replica_bytes);
  lines.field("mem_clients_normal", figures.client_bytes);
  lines.zeros({"mem_cluster_links"});
  lines.field("mem_aof_buffer", figures.log_bytes);
  // Bytes of the big bit arrays: reserved, freed but still mapped for a child, resident, and in
  // huge pages. The resident bytes include pages of
  // reserved and of freed arrays, whichever process touched the pages. They also include the huge
  // pages.
  lines.field("mem_filter_arrays_reserved", core::bloom::mapped_bytes());
  lines.field("mem_filter_arrays_kept_for_child", core::bloom::kept_array_bytes());
  lines.field("mem_filter_arrays_resident", figures.resident_array_bytes);
  lines.field("mem_filter_arrays_huge_bytes", core::bloom::huge_array_bytes());
  lines.field("mem_allocator", allocator_name());
  lines.zeros({"active_defrag_running"});
  lines.field("lazyfree_pending_objects", source.services.reclaimer.pending());
  lines.zeros({"lazyfreed_objects"});
}

}  // namespace server::info
