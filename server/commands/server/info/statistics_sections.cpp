// SPDX-License-Identifier: MIT
//
// INFO about what has happened and what is stored: stats, commandstats, errorstats, keyspace, and
// the sections of the Bloom filters.
#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "server/commands/bloom/bloom_statistics.h"
#include "server/commands/server/info/section.h"
#include "server/commands/services.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/process/gauges.h"
#include "server/process/process_facts.h"
#include "server/process/server_state.h"
#include "server/process/statistics.h"
#include "server/process/tick_clock.h"
#include "server/pubsub/pub_sub.h"
#include "server/replication/leader/leader.h"
#include "server/replication/roles/follower.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server::info {
namespace {

void write_traffic(const Source& source, Lines& lines) {
  constexpr double kBytesPerKilobyte = 1024;
  const Statistics& statistics = source.services.statistics;
  const Gauges& gauges = source.services.gauges;
  const auto total = [&](Counter ThreadStatistics::*counter) { return statistics.total(counter); };
  lines.field("total_connections_received", total(&ThreadStatistics::connections_received));
  lines.field("total_commands_processed", total(&ThreadStatistics::commands_processed));
  lines.field("instantaneous_ops_per_sec", gauges.operations_per_second.load());
  lines.field("total_net_input_bytes", total(&ThreadStatistics::input_bytes));
  lines.field("total_net_output_bytes", total(&ThreadStatistics::output_bytes));
  const Leader::Counters& leader = source.services.leader.counters();
  lines.zeros({"total_net_repl_input_bytes"});
  lines.field("total_net_repl_output_bytes", leader.output_bytes.load());
  const auto kilobytes = [](uint64_t bytes) {
    return static_cast<double>(bytes) / kBytesPerKilobyte;
  };
  lines.ratio("instantaneous_input_kbps", kilobytes(gauges.input_bytes_per_second.load()));
  lines.ratio("instantaneous_output_kbps", kilobytes(gauges.output_bytes_per_second.load()));
  lines.ratio("instantaneous_input_repl_kbps", 0);
  lines.ratio("instantaneous_output_repl_kbps", 0);
  lines.field("rejected_connections", total(&ThreadStatistics::connections_rejected));
  lines.field("sync_full", leader.full_syncs.load());
  lines.field("sync_partial_ok", leader.partial_syncs.load());
  lines.field("sync_partial_err", leader.refused_partial_syncs.load());
}

}  // namespace

void write_stats(const Source& source, Lines& lines) {
  const Statistics& statistics = source.services.statistics;
  const Gauges& gauges = source.services.gauges;
  const auto total = [&](Counter ThreadStatistics::*counter) { return statistics.total(counter); };
  write_traffic(source, lines);
  const core::keyspace::ExpiryStatistics& expiry = source.services.keyspace.expiry_statistics();
  lines.field("expired_keys", expiry.expired.load());
  lines.ratio("expired_stale_perc", expiry.stale_ratio.load() * 100);
  lines.field("expired_time_cap_reached_count", expiry.ticks_cut_by_time.load());
  lines.field("expire_cycle_cpu_milliseconds", gauges.expire_cycle_us.load() / 1000);
  lines.field("evicted_keys", gauges.evicted_keys.load());
  lines.field("evicted_clients", source.services.clients.evicted_count());
  const int64_t since_us = gauges.eviction_exceeded_since_us.load();
  const int64_t exceeded_us = since_us == 0 ? 0 : source.services.clock.monotonic_us() - since_us;
  const auto before_us = static_cast<int64_t>(gauges.eviction_exceeded_us.load());
  lines.field("total_eviction_exceeded_time", (before_us + exceeded_us) / 1000);
  lines.field("current_eviction_exceeded_time", exceeded_us / 1000);
  lines.field("keyspace_hits", total(&ThreadStatistics::keyspace_hits));
  lines.field("keyspace_misses", total(&ThreadStatistics::keyspace_misses));
  const PubSub& pubsub = source.services.pubsub;
  lines.field("pubsub_channels", pubsub.name_count(SubscriptionKind::kChannel));
  lines.field("pubsub_patterns", pubsub.name_count(SubscriptionKind::kPattern));
  lines.field("pubsubshard_channels", pubsub.name_count(SubscriptionKind::kShardChannel));
  lines.field("latest_fork_usec", source.services.durability.saves().slot().last_fork_us());
  lines.field("total_forks", source.services.durability.saves().slot().fork_count());
  lines.zeros({"migrate_cached_sockets", "slave_expires_tracked_keys", "active_defrag_hits",
               "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
               "total_active_defrag_time", "current_active_defrag_time"});
  const TrackingFigures& tracking = source.services.state.tracking;
  lines.field("tracking_total_keys", tracking.keys.load());
  lines.field("tracking_total_items", tracking.items.load());
  lines.field("tracking_total_prefixes", tracking.prefixes.load());
  lines.field("unexpected_error_replies",
              source.services.follower.figures().stream.failed_commands.load());
  lines.field("total_error_replies", statistics.total_errors());
  lines.zeros({"dump_payload_sanitizations"});
  const uint64_t reads = total(&ThreadStatistics::reads_processed);
  const uint64_t writes = total(&ThreadStatistics::writes_processed);
  lines.field("total_reads_processed", reads);
  lines.field("total_writes_processed", writes);
  // Every read and write is done by an I/O thread; with one thread it is the main one of Redis.
  const bool threaded = source.services.facts.io_thread_count > 1;
  lines.field("io_threaded_reads_processed", threaded ? reads : 0);
  lines.field("io_threaded_writes_processed", threaded ? writes : 0);
  lines.zeros({"reply_buffer_shrinks", "reply_buffer_expands"});
  lines.field("client_query_buffer_limit_disconnections",
              total(&ThreadStatistics::query_buffer_disconnections));
  lines.field("client_output_buffer_limit_disconnections",
              total(&ThreadStatistics::output_buffer_disconnections));
}

void write_commandstats(const Source& source, Lines& lines) {
  const Services& services = source.services;
  for (size_t i = 0; i < services.registry.size(); ++i) {
    const auto total = [&](Counter CommandCounters::*counter) {
      return services.statistics.total(i, counter);
    };
    const uint64_t calls = total(&CommandCounters::calls);
    const uint64_t rejected = total(&CommandCounters::rejected);
    const uint64_t failed = total(&CommandCounters::failed);
    if (calls == 0 && rejected == 0 && failed == 0) continue;
    const double total_us = services.ticks.microseconds(total(&CommandCounters::ticks));
    lines.field(
        fmt::format("cmdstat_{}", services.registry.at(i).full_name),
        fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                    calls, static_cast<uint64_t>(total_us),
                    calls == 0 ? 0.0 : total_us / static_cast<double>(calls), rejected, failed));
  }
}

void write_errorstats(const Source& source, Lines& lines) {
  for (const auto& [code, count] : source.services.statistics.errors()) {
    lines.field(fmt::format("errorstat_{}", code), fmt::format("count={}", count));
  }
}

void write_keyspace(const Source& source, Lines& lines) {
  const core::keyspace::Keyspace& keyspace = source.services.keyspace;
  for (unsigned database = 0; database < keyspace.database_count(); ++database) {
    const uint64_t keys = keyspace.db_size(database);
    if (keys == 0) continue;
    lines.field(fmt::format("db{}", database),
                fmt::format("keys={},expires={},avg_ttl={}", keys, keyspace.expires_count(database),
                            keyspace.expiry_statistics().average_ttl_ms(database)));
  }
}

void write_bloom(const Source& source, Lines& lines) {
  const BloomTotals totals = bloom_totals(source.services.keyspace, source.locking);
  lines.field("bf_bloom_total_memory_bytes", totals.memory_bytes);
  lines.field("bf_bloom_num_objects", totals.object_count);
  lines.field("bf_bloom_num_filters_across_objects", totals.layer_count);
  lines.field("bf_bloom_num_items_across_objects", totals.item_count);
  lines.field("bf_bloom_capacity_across_objects", totals.capacity);
}

// Arrays are never moved.
void write_bloom_defrag(const Source&, Lines& lines) {
  lines.zeros({"bf_bloom_defrag_hits", "bf_bloom_defrag_misses"});
}

}  // namespace server::info
