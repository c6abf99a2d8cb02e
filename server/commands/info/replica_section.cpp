// SPDX-License-Identifier: MIT
//
// Writes the lines of INFO replication about a replica's link to its leader.
#include <algorithm>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/process/availability.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"
#include "server/durability/durability.h"
#include "server/durability/log/append_log.h"
#include "server/replication/replica/link_failures.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"

namespace server::info {
namespace {

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

}  // namespace

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
    const auto takes = services.durability.append_log().takes_more();
    const std::string cause =
        takes ? services.replica_controller.failures().cause() : takes.error().message;
    if (!cause.empty()) lines.field("master_link_down_reason", cause);
  }
  lines.field("slave_priority", config.integer(OptionId::kReplicaPriority));
  lines.field("slave_read_only", config.integer(OptionId::kReplicaReadOnly));
  lines.field("replica_announced", config.integer(OptionId::kReplicaAnnounced));
}

}  // namespace server::info
