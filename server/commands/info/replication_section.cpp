// SPDX-License-Identifier: MIT
//
// Writes the section replication of INFO: the role, the replicas, the stream and its backlog.
#include <algorithm>

#include "server/base/config/config.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/replication/failover.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"

namespace server::info {
namespace {

// Returns Redis' name for the state. As in Redis, a replica that is loading its snapshot is online.
std::string_view state_name(ReplicaState state) {
  if (state == ReplicaState::kWaits || state == ReplicaState::kSnapshot) return "wait_bgsave";
  return state == ReplicaState::kFile ? "send_bulk" : "online";
}

void write_replicas(const Source& source, Lines& lines) {
  Leader& leader = source.services.leader;
  const auto replicas = leader.describe();
  lines.field("connected_slaves", replicas.size());
  const Config& config = source.services.config;
  if (config.integer(OptionId::kMinReplicasToWrite) > 0 &&
      config.integer(OptionId::kMinReplicasMaxLag) > 0) {
    lines.field("min_slaves_good_slaves", leader.count_good());
  }
  for (size_t i = 0; i < replicas.size(); ++i) {
    const auto& replica = replicas[i];
    lines.field(fmt::format("slave{}", i),
                fmt::format("ip={},port={},state={},offset={},lag={}", replica.address,
                            replica.port, state_name(replica.state), replica.acked, replica.lag_s));
  }
}

void write_backlog(const Source& source, Lines& lines) {
  const Replication& replication = source.services.replication;
  const Backlog& backlog = replication.backlog();
  const ReplicationIds ids = replication.ids();
  lines.field("master_failover_state",
              failover_state_name(source.services.replica_controller.failover_state()));
  lines.field("master_replid", ids.id);
  lines.field("master_replid2", ids.id2);
  const uint64_t end = backlog.end_offset();
  const uint64_t first = std::min(backlog.first_offset(), end);
  lines.field("master_repl_offset", end);
  lines.field("second_repl_offset", ids.second_offset);
  lines.field("repl_backlog_active", backlog.is_active() ? 1 : 0);
  lines.field("repl_backlog_size", backlog.size_bytes());
  lines.field("repl_backlog_first_byte_offset", backlog.is_active() ? first + 1 : 0);
  lines.field("repl_backlog_histlen", backlog.is_active() ? end - first : 0);
}

}  // namespace

void write_replication(const Source& source, Lines& lines) {
  lines.field("role", source.services.replication.is_replica() ? "slave" : "master");
  if (source.services.replication.is_replica()) write_replica(source, lines);
  write_replicas(source, lines);
  write_backlog(source, lines);
}

}  // namespace server::info
