// SPDX-License-Identifier: MIT
//
// Writes the section replication of INFO: the role, the replicas, the stream and its backlog.
#include <algorithm>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/process/availability.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/durability/durability.h"
#include "server/durability/log/append_log.h"
#include "server/replication/failover.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica/link_failures.h"
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

void write_sync(const ReplicaFigures& figures, int64_t silent_s, Lines& lines) {
  // The size of a snapshot that ends with a marker is unknown.
  const int64_t total = std::max<int64_t>(figures.sync_size, 0);
  const int64_t received = figures.sync_received;
  lines.field("master_sync_total_bytes", total);
  lines.field("master_sync_read_bytes", received);
  lines.field("master_sync_left_bytes", total - received);
  lines.ratio("master_sync_perc",
              total == 0 ? 0 : 100 * static_cast<double>(received) / static_cast<double>(total));
  lines.field("master_sync_last_io_seconds_ago", silent_s);
}

// Writes the lines about this replica's link to its leader.
void write_replica(const Source& source, Lines& lines) {
  const Services& services = source.services;
  const Config& config = services.config;
  const ReplicaFigures& figures = services.replica_controller.figures();
  const auto target = services.replica_controller.target().value_or(ReplicaController::Target{});
  const ReplicaLinkState state = figures.state;
  // After a full sync, the loaded snapshot becomes the base of the append log. Until this is done,
  // clients get LOADING errors, so the link is shown as down.
  const bool is_up = state == ReplicaLinkState::kConnected && services.replication.link_is_up() &&
                     !services.durability.availability.has(Availability::kLoading);
  const int64_t now_us = services.clock.monotonic_us();
  const int64_t silent_s = (now_us - figures.last_received_us) / core::kSecondUs;
  lines.field("master_host", target.host);
  lines.field("master_port", target.port);
  lines.field("master_link_status", is_up ? "up" : "down");
  lines.field("master_last_io_seconds_ago", is_up ? silent_s : -1);
  lines.field("master_sync_in_progress", state == ReplicaLinkState::kSync ? 1 : 0);
  const auto offset = static_cast<int64_t>(services.replication.offset());
  lines.field("slave_read_repl_offset", std::max<int64_t>(figures.read_offset, offset));
  lines.field("slave_repl_offset", offset);
  if (state == ReplicaLinkState::kSync) write_sync(figures, silent_s, lines);
  if (!is_up) {
    const int64_t since_us = figures.down_since_us;
    lines.field("master_link_down_since_seconds",
                since_us == 0 ? -1 : (now_us - since_us) / core::kSecondUs);
    const auto takes = services.durability.append_log.takes_more();
    const std::string cause =
        takes ? services.replica_controller.failures().cause() : takes.error().message;
    if (!cause.empty()) lines.field("master_link_down_reason", cause);
  }
  lines.field("slave_priority", config.integer(OptionId::kReplicaPriority));
  lines.field("slave_read_only", config.integer(OptionId::kReplicaReadOnly));
  lines.field("replica_announced", config.integer(OptionId::kReplicaAnnounced));
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
