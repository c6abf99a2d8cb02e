// SPDX-License-Identifier: MIT
//
// The part of Leader that starts snapshots for replicas, runs the child process that writes them,
// and sends them.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/durability/data/file_names.h"
#include "server/durability/durability.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/transfer_saver.h"
#include "server/replication/leader/leader.h"
#include "server/replication/leader/replica_sender.h"
#include "server/replication/leader/replica_snapshot.h"
#include "server/replication/leader/socket_sink.h"
#include "server/replication/leader/stream_pump.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"

namespace server {
namespace {

// Writes the snapshot. Runs in the child process.
core::Result<> write_snapshot(const ReplicationParts& parts, const ReplicaBatch& batch,
                              const std::string& path, const std::string& mark,
                              const std::vector<int>& descriptors,
                              persistence::RdbWriteOptions options) {
  options.has_keys = batch.has_keys;
  if (batch.form == SnapshotForm::kFile) {
    const auto written = persistence::write_rdb_file(parts.files, path, parts.keyspace, options);
    if (!written) return written.error();
    return {};
  }
  SocketSink sink(descriptors, parts.config.integer(OptionId::kReplTimeout), parts.clock);
  if (auto sent = sink.write(fmt::format("$EOF:{}\r\n", mark)); !sent) return sent;
  // Only the end mark may follow the RDB, because the receiver finds the end by that mark.
  if (auto written = persistence::write_rdb(sink, parts.keyspace, options); !written) {
    return written.error();
  }
  return sink.write(mark);
}

}  // namespace

void Leader::begin_snapshot(const ReplicaBatch& batch) {
  const std::string mark = random_id();
  // The name is chosen before the fork, because it contains the process id.
  const std::string path = temporary_transfer();
  {
    const std::scoped_lock lock(mutex_);
    snapshot_ = std::make_unique<ReplicaSnapshot>(ReplicaSnapshot{batch, path, std::nullopt});
  }
  std::vector<LinkPtr> receivers;
  std::vector<int> descriptors;
  SnapshotTransfer transfer;
  transfer.is_exact = batch.is_exact;
  transfer.prepare =
      [&](const persistence::RdbReplicationInfo& position) -> core::Result<std::vector<int>> {
    auto prepared = prepare_snapshot(position);
    if (!prepared) return prepared.error();
    receivers = std::move(*prepared);
    if (batch.form == SnapshotForm::kFile) return descriptors;
    for (const LinkPtr& link : receivers) descriptors.push_back(link->socket.get());
    return descriptors;
  };
  transfer.write = [&](const persistence::RdbWriteOptions& options) {
    return write_snapshot(parts_, batch, path, mark, descriptors, options);
  };
  transfer.finished = [this](const core::Result<>& result) {
    {
      const std::scoped_lock lock(mutex_);
      if (snapshot_) snapshot_->result = result;
    }
    pump_->interrupt();
  };
  const auto started = parts_.durability.saves().transfers().start(std::move(transfer));
  if (started) return;
  const std::scoped_lock lock(mutex_);
  // If the fork has failed, finished() has stored its result. If no result is stored, start()
  // failed before the fork. The snapshot is then dropped and tried again soon.
  if (!snapshot_->result) snapshot_.reset();
  constexpr int64_t kRetryUs = 100'000;
  constexpr int64_t kRetryForMemoryUs = 10 * core::kSecondUs;
  const bool lacks_memory = started.error().message.starts_with("OOM");
  if (lacks_memory) log_warning("No snapshot for replicas now: {}", started.error().message);
  times_.next_snapshot_us =
      parts_.clock.monotonic_us() + (lacks_memory ? kRetryForMemoryUs : kRetryUs);
}

core::Result<std::vector<Leader::LinkPtr>> Leader::prepare_snapshot(
    const persistence::RdbReplicationInfo& position) {
  const std::scoped_lock lock(mutex_);
  // All stripes are locked, so no later command can change what foreign replicas must hold.
  drop_foreign(parts_.clock.monotonic_us());
  const auto offset = static_cast<uint64_t>(position.offset);
  const std::string line = fmt::format("+FULLRESYNC {} {}\r\n", position.id, position.offset);
  std::vector<LinkPtr> receivers;
  const ReplicaBatch& batch = snapshot_->batch;
  for (const auto id : batch.ids) {
    const auto found = links_.find(id);
    if (found == links_.end()) continue;
    ReplicaSender& link = *found->second;
    link.cursor = backlog_.attach(offset);
    link.offset = offset;
    if (link.speaks_psync) link.say(line);
    // The reply +FULLRESYNC is sent before the fork, so that it precedes the child process' first
    // byte. A socket that does not accept this short reply at once is unusable.
    uint64_t sent = 0;
    (void)link.pump(backlog_, false, {}, sent);
    if (!link.cursor || !link.has_said_all()) {
      drop(id, "it takes no bytes");
      continue;
    }
    receivers.push_back(found->second);
  }
  if (receivers.empty()) return core::Error{"ERR no replica is left"};
  // The first command of the stream after the snapshot must select its database again.
  replication_.restate_database();
  replicas_->begin(batch, parts_.clock.monotonic_us());
  log_notice("A snapshot for {} replicas begins at offset {}, {}", receivers.size(), offset,
             batch.form == SnapshotForm::kMarked ? "into their sockets" : "by way of a file");
  return receivers;
}

void Leader::finish_snapshot(int64_t now_us) {
  const ReplicaSnapshot snapshot = std::move(*snapshot_);
  snapshot_.reset();
  const bool is_file = snapshot.batch.form == SnapshotForm::kFile;
  if (!*snapshot.result) {
    const std::string& reason = snapshot.result->error().message;
    const bool is_wanted = std::ranges::any_of(snapshot.batch.ids,
                                               [this](uint64_t id) { return links_.contains(id); });
    if (is_wanted) {
      log_warning("A snapshot for replicas failed: {}", reason);
    } else {
      log_notice("A snapshot for replicas was not finished: {}", reason);
    }
    if (is_file) (void)parts_.files.remove(snapshot.path);
    for (const auto id : snapshot.batch.ids) drop(id, "its snapshot failed");
    return;
  }
  for (const auto id : replicas_->finish_snapshot(snapshot.batch, now_us)) {
    const LinkPtr link = links_.at(id);
    link->moved_us = now_us;
    if (is_file) {
      send_file(id, snapshot.path);
    } else if (replicas_->find(id)->traits.wants_snapshot_only) {
      log_notice("{} has its snapshot, all that it wanted", link->session->address);
      drop(id, "");
    }
  }
  // The file can be removed now, because each connection that sends it has opened it.
  if (is_file) (void)parts_.files.remove(snapshot.path);
  update_write_gate_locked(now_us);
}

void Leader::send_file(uint64_t id, const std::string& path) {
  auto file = persistence::open_file(path, O_RDONLY);
  struct stat status {};
  if (!file || ::fstat(file->get(), &status) != 0) {
    return drop(id, "the file of its snapshot cannot be read");
  }
  ReplicaSender& link = *links_.at(id);
  link.say(fmt::format("${}\r\n", status.st_size));
  link.send_file(*std::move(file), static_cast<uint64_t>(status.st_size));
}

void Leader::finish_file(uint64_t id) {
  const Replica* const replica = replicas_->find(id);
  if (replica == nullptr) return;
  if (replica->traits.wants_snapshot_only) return drop(id, "");
  const int64_t now_us = parts_.clock.monotonic_us();
  replicas_->go_online(id, now_us);
  update_write_gate_locked(now_us);
}

}  // namespace server
