// SPDX-License-Identifier: MIT
//
// Writes the first lines of the section stats of INFO: connections, commands, and bytes in and out.
#include "server/base/metrics/gauges.h"
#include "server/base/metrics/statistics.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/replication/leader/leader.h"

namespace server::info {

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

}  // namespace server::info
