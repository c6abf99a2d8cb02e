// SPDX-License-Identifier: MIT
//
// Writes the section stats of INFO.
#include "core/clock.h"
#include "core/keyspace/expiry_index.h"
#include "core/keyspace/keyspace.h"
#include "server/base/metrics/gauges.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/process_facts.h"
#include "server/base/process/server_state.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/durability/durability.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica_controller.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/pubsub/pub_sub.h"

namespace server::info {
namespace {

// Writes the first lines of the section: connections, commands, and bytes in and out.
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
  lines.field("expired_keys_active", expiry.expired_actively.load());
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
  lines.field("latest_fork_usec", source.services.durability.saves.slot.last_fork_us());
  lines.field("total_forks", source.services.durability.saves.slot.fork_count());
  lines.zeros({"migrate_cached_sockets", "slave_expires_tracked_keys", "active_defrag_hits",
               "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
               "total_active_defrag_time", "current_active_defrag_time"});
  const TrackingFigures& tracking = source.services.state.tracking;
  lines.field("tracking_total_keys", tracking.keys.load());
  lines.field("tracking_total_items", tracking.items.load());
  lines.field("tracking_total_prefixes", tracking.prefixes.load());
  lines.field("unexpected_error_replies",
              source.services.replica_controller.figures().stream.failed_commands.load());
  lines.field("total_error_replies", statistics.total_errors());
  lines.zeros({"dump_payload_sanitizations"});
  const uint64_t reads = total(&ThreadStatistics::reads_processed);
  const uint64_t writes = total(&ThreadStatistics::writes_processed);
  lines.field("total_reads_processed", reads);
  lines.field("total_writes_processed", writes);
  // I/O threads do all reads and writes. If there is only one I/O thread, its reads and writes
  // count as those of Redis' main thread.
  const bool threaded = source.services.facts.io_thread_count > 1;
  lines.field("io_threaded_reads_processed", threaded ? reads : 0);
  lines.field("io_threaded_writes_processed", threaded ? writes : 0);
  lines.zeros({"reply_buffer_shrinks", "reply_buffer_expands"});
  lines.field("client_query_buffer_limit_disconnections",
              total(&ThreadStatistics::query_buffer_disconnections));
  lines.field("client_output_buffer_limit_disconnections",
              total(&ThreadStatistics::output_buffer_disconnections));
  const acl::AccessLog& denied = source.services.users.log();
  lines.field("acl_access_denied_auth", denied.count(acl::Reason::kLogin));
  lines.field("acl_access_denied_cmd", denied.count(acl::Reason::kCommand));
  lines.field("acl_access_denied_key", denied.count(acl::Reason::kKey));
  lines.field("acl_access_denied_channel", denied.count(acl::Reason::kChannel));
  // The counter acl_access_denied_tls_cert is always 0, because Bloomery does not authenticate
  // users by certificates.
  lines.zeros({"acl_access_denied_tls_cert"});
}

}  // namespace server::info
