// SPDX-License-Identifier: MIT
//
// Writes the section memory of INFO.
#include <array>

#include "core/bloom/arrays/array_memory.h"
#include "core/bloom/arrays/huge_pages.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "server/base/config/config.h"
#include "server/base/process/allocator.h"
#include "server/base/process/memory_monitor.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/durability/durability.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server::info {
namespace {

double ratio_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns a signed difference, because used memory can exceed resident memory: used memory includes
// pages of mapped bit arrays that were never written.
int64_t difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

uint64_t table_bytes(const Source& source) {
  using namespace core::keyspace;
  Keyspace& keyspace = source.services.keyspace;
  uint64_t sum = 0;
  for (unsigned i = 0; i < kStripeCount; ++i) {
    const StripeMask mask = source.locking == Locking::kTake ? StripeMask{1} << i : 0;
    const StripeLock lock = keyspace.lock(mask, LockMode::kShared);
    for (unsigned database = 0; database < keyspace.database_count(); ++database) {
      const core::keyspace::Database& share = keyspace.database_of_stripe(i, database);
      if (share.table != nullptr) sum += share.table->memory_bytes();
      sum += share.expiry_index.memory_bytes();
    }
  }
  return sum;
}

void write_allocator(uint64_t used, const ResidentMemory& resident, Lines& lines) {
  const AllocatorFigures allocator = allocator_figures();
  lines.ratio("allocator_frag_ratio", ratio_of(allocator.active_bytes, allocator.allocated_bytes));
  lines.field("allocator_frag_bytes",
              difference(allocator.active_bytes, allocator.allocated_bytes));
  lines.ratio("allocator_rss_ratio", ratio_of(allocator.resident_bytes, allocator.active_bytes));
  lines.field("allocator_rss_bytes", difference(allocator.resident_bytes, allocator.active_bytes));
  lines.ratio("rss_overhead_ratio", ratio_of(resident.total_bytes, allocator.resident_bytes));
  lines.field("rss_overhead_bytes", difference(resident.total_bytes, allocator.resident_bytes));
  lines.ratio("mem_fragmentation_ratio", ratio_of(resident.total_bytes, used));
  lines.field("mem_fragmentation_bytes", difference(resident.total_bytes, used));
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
  const MemoryMonitor::Parts parts = memory.measure();
  const uint64_t used = parts.used();
  const uint64_t peak = memory.peak_bytes();
  const uint64_t startup = memory.startup_bytes();
  const Clients::Memory clients = source.services.clients.memory();
  const StreamMemory stream(source.services.replication.backlog());
  const uint64_t replicas = clients.replica_bytes + stream.replica_bytes;
  const uint64_t log_bytes = source.services.durability.log_memory_bytes();
  const uint64_t overhead = startup + clients.normal_bytes + replicas + stream.backlog_bytes +
                            log_bytes + table_bytes(source);
  const uint64_t dataset = used > overhead ? used - overhead : 0;
  const ResidentMemory resident = resident_memory();
  const AllocatorFigures allocator = allocator_figures();
  lines.bytes("used_memory", used);
  lines.bytes("used_memory_rss", resident.total_bytes);
  lines.bytes("used_memory_peak", peak);
  lines.percent("used_memory_peak_perc", 100 * ratio_of(used, peak));
  lines.field("used_memory_overhead", overhead);
  lines.field("used_memory_startup", startup);
  lines.field("used_memory_dataset", dataset);
  lines.percent("used_memory_dataset_perc",
                used > startup ? 100 * ratio_of(dataset, used - startup) : 0);
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
  write_allocator(used, resident, lines);
  lines.field("mem_not_counted_for_evict", used - parts.evictable());
  lines.field("mem_replication_backlog", stream.backlog_bytes);
  lines.field("mem_total_replication_buffers", stream.backlog_bytes + stream.replica_bytes);
  lines.field("mem_clients_slaves", replicas);
  lines.field("mem_clients_normal", clients.normal_bytes);
  lines.zeros({"mem_cluster_links"});
  lines.field("mem_aof_buffer", log_bytes);
  // Bytes of the big bit arrays: reserved, freed but still mapped for a child, resident, and in
  // huge pages. The resident bytes include pages of
  // reserved and of freed arrays, whichever process touched the pages. They also include the huge
  // pages.
  lines.field("mem_filter_arrays_reserved", core::bloom::mapped_bytes());
  lines.field("mem_filter_arrays_kept_for_child", core::bloom::kept_array_bytes());
  lines.field("mem_filter_arrays_resident", core::bloom::resident_array_bytes());
  lines.field("mem_filter_arrays_huge_bytes", core::bloom::huge_array_bytes());
  lines.field("mem_allocator", allocator_name());
  lines.zeros({"active_defrag_running"});
  lines.field("lazyfree_pending_objects", source.services.reclaimer.pending());
  lines.zeros({"lazyfreed_objects"});
}

}  // namespace server::info
