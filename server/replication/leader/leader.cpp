// SPDX-License-Identifier: MIT
#include "server/replication/leader/leader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "core/bloom/arrays/array_memory.h"
#include "core/clock.h"
#include "persistence/files/file_system.h"
#include "persistence/files/open_file.h"
#include "persistence/journal.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/availability.h"
#include "server/base/process/start_thread.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/data/file_names.h"
#include "server/durability/durability.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/transfer_saver.h"
#include "server/replication/leader/foreign_replicas.h"
#include "server/replication/leader/replica_sender.h"
#include "server/replication/leader/replicas.h"
#include "server/replication/leader/socket_sink.h"
#include "server/replication/leader/stream_pump.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/ids.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"

namespace server {

// A snapshot that a child process is writing for replicas. Leader's mutex guards it.
struct ReplicaSnapshot {
  ReplicaBatch batch;
  std::string path;  // path of the snapshot's file; empty if the child process writes to sockets
  std::optional<core::Result<>> result;  // result of the child process; nullopt until it has ended
};

namespace {

constexpr std::array<std::string_view, 1> kPing = {"PING"};
constexpr std::array<std::string_view, 3> kGetAck = {"REPLCONF", "GETACK", "*"};

// Returns whether the replicas may be asked for acknowledgements now. If not, the request waits.
bool may_ask(const PauseGate& pause, const core::Clock& clock) {
  return !pause.ends_stream() && !pause.holds_back_by_client(kWrite, clock.wall_ms());
}

// Returns the host of an address: "127.0.0.1" for "127.0.0.1:6379", "::1" for "[::1]:6379".
std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

Replicas::Policy snapshot_policy(const Config& config) {
  return {config.flag(OptionId::kReplDisklessSync),
          config.integer(OptionId::kReplDisklessSyncDelay),
          config.integer(OptionId::kReplDisklessSyncMaxReplicas)};
}

// Writes the snapshot. Runs in the child process.
core::Result<> write_snapshot(const ReplicationParts& parts, const ReplicaBatch& batch,
                              const std::string& path, const std::string& mark,
                              const std::vector<int>& descriptors,
                              persistence::RdbWriteOptions options) {
  options.has_keys = batch.has_keys;
  if (batch.form == SnapshotForm::kFile) {
    return core::without_value(
        persistence::write_rdb_file(parts.files, path, parts.keyspace, options));
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

Leader::Leader(const ReplicationParts& parts, Replication& replication, const PauseGate& pause,
               AckListener& ack_listener)
    : parts_(parts),
      replication_(replication),
      pause_(pause),
      ack_listener_(ack_listener),
      backlog_(replication.backlog()),
      pump_(std::make_unique<StreamPump>(backlog_, parts_.clock)),
      replicas_(std::make_unique<Replicas>()),
      foreign_(std::make_unique<ForeignReplicas>(parts_.config, parts_.state,
                                                 core::keyspace::LayoutCounts::of_process())) {
  parts_.config.on_change(OptionId::kReplicaForeign, [this]() -> core::Result<> {
    const std::scoped_lock lock(mutex_);
    drop_foreign(parts_.clock.monotonic_us());
    return {};
  });
  backlog_.on_append = [this] { pump_->wake(); };
  replication_.on_stream_replaced = [this] { on_stream_replaced(); };
  replication_.on_role_changed = [this] { update_write_gate(); };
  parts_.config.follow({OptionId::kMinReplicasToWrite, OptionId::kMinReplicasMaxLag},
                       [this] { update_write_gate(); });
}

Leader::~Leader() {
  replication_.on_stream_replaced = replication_.on_role_changed = [] {};
  stop();
  backlog_.on_append = [] {};
}

void Leader::start() {
  times_.last_replica_us = parts_.clock.monotonic_us();
  thread_ = start_thread("leader", [this] { run(); });
}

void Leader::stop() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  pump_->interrupt();
  thread_.join();
}

core::Result<> Leader::attach(const std::shared_ptr<Client>& client, const ReplicaTraits& traits,
                              const Request& request) {
  auto link = std::make_shared<ReplicaSender>(client);
  if (!link->socket.is_open()) return core::Error{"ERR no descriptor is left for a replica"};
  link->speaks_psync = !request.is_sync;
  const int no_delay = parts_.config.flag(OptionId::kReplDisableTcpNodelay) ? 0 : 1;
  ::setsockopt(link->socket.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
  const int64_t now_us = parts_.clock.monotonic_us();
  std::unique_lock lock(mutex_);
  drop_foreign(now_us);
  if (traits.is_foreign()) {
    if (auto checked = foreign_->check(client->address, now_us); !checked) return checked;
  }
  if (request.take_over) {
    lock.unlock();
    if (auto taken = request.take_over(); !taken) return taken;
    lock.lock();
  }
  link->moved_us = now_us;
  if (request.is_sync || !try_partial(link, traits, request, now_us)) {
    if (!request.is_sync && request.id != "?") ++counters_.refused_partial_syncs;
    ++counters_.full_syncs;
    if (!backlog_.is_active()) replication_.begin_backlog();
    ReplicaTraits served = traits;
    // A child process that writes directly to sockets cannot write TLS records, because this
    // process keeps their sequence numbers.
    if (client->socket.tls != nullptr) served.takes_eof_mark = false;
    replicas_->add(client->id, served, !request.is_sync, now_us);
    log_notice("Replica {} asks for a full synchronization", client->address);
  }
  links_[client->id] = std::move(link);
  update_write_gate_locked(now_us);
  lock.unlock();
  pump_->interrupt();
  return {};
}

bool Leader::try_partial(const LinkPtr& link, const ReplicaTraits& traits, const Request& request,
                         int64_t now_us) {
  const ReplicationIds ids = replication_.ids();
  if (request.offset < 1 || !ids.are_continued_from(request.id, request.offset)) return false;
  const auto offset = static_cast<uint64_t>(request.offset) - 1;
  const bool is_foreign = traits.is_foreign();
  if (is_foreign && !foreign_->may_continue_from(offset)) return false;
  link->cursor = backlog_.attach(offset);
  if (!link->cursor) return false;
  link->offset = offset;
  const Client& client = *link->client;
  link->say(traits.knows_psync2 ? "+CONTINUE " + ids.id + "\r\n" : "+CONTINUE\r\n");
  replicas_->add_online(client.id, traits, offset, now_us);
  ++counters_.partial_syncs;
  log_notice("Replica {} goes on at offset {}, {} bytes behind", client.address, offset,
             backlog_.end_offset() - std::min(offset, backlog_.end_offset()));
  return true;
}

void Leader::detach(uint64_t client_id) {
  const std::scoped_lock lock(mutex_);
  forget(client_id);
  update_write_gate_locked(parts_.clock.monotonic_us());
}

void Leader::forget(uint64_t id) {
  replicas_->remove(id);
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  if (found->second->cursor) backlog_.detach(*found->second->cursor);
  links_.erase(found);
  times_.last_replica_us = parts_.clock.monotonic_us();
}

void Leader::drop(uint64_t id, std::string_view reason) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const LinkPtr link = found->second;
  if (!reason.empty()) log_warning("Replica {} is disconnected: {}", link->client->address, reason);
  link->shut_down();
  link->client->request_kill();
  forget(id);
}

void Leader::drop_foreign(int64_t now_us) {
  const bool has_own_words = foreign_->take_own_words(backlog_.end_offset());
  std::vector<uint64_t> foreign;
  for (const auto& [id, replica] : replicas_->all()) {
    if (replica.traits.is_foreign()) foreign.push_back(id);
  }
  if (foreign.empty()) return;
  const auto obstacle = foreign_->obstacle();
  for (const auto id : foreign) {
    // A replica that still waits for its snapshot stays connected. It will not receive the commands
    // that it does not know, because the snapshot contains their effects.
    const bool has_stream = links_.at(id)->cursor.has_value();
    if (obstacle) {
      drop(id, *obstacle);
    } else if (has_own_words && has_stream) {
      drop(id, "the stream holds a command for filters that it does not know");
    }
  }
  update_write_gate_locked(now_us);
}

void Leader::on_stream_replaced() {
  const std::scoped_lock lock(mutex_);
  while (!links_.empty()) drop(links_.begin()->first, "");
  update_write_gate_locked(parts_.clock.monotonic_us());
}

void Leader::ack(uint64_t client_id, ReplicaAck ack) {
  bool is_new = false;
  {
    const std::scoped_lock lock(mutex_);
    const int64_t now_us = parts_.clock.monotonic_us();
    // Foreign replicas acknowledge even commands that they cannot execute. If the stream contains
    // such a command, drop_foreign() disconnects all foreign replicas. It is called first, so that
    // an acknowledgement of such a command does not count.
    drop_foreign(now_us);
    // The offset is limited to the stream's end. Otherwise WAIT would count this replica for all
    // later writes.
    const uint64_t end = backlog_.end_offset();
    ack.offset = std::min(ack.offset, end);
    if (ack.synced) ack.synced = std::min(*ack.synced, end);
    is_new = replicas_->ack(client_id, ack, now_us);
    update_write_gate_locked(now_us);
  }
  if (is_new) pump_->interrupt();
  ack_listener_.on_ack();
}

int64_t Leader::count_acked(uint64_t offset) const {
  const std::scoped_lock lock(mutex_);
  return replicas_->count_acked(offset);
}

int64_t Leader::count_synced(uint64_t offset) const {
  const std::scoped_lock lock(mutex_);
  return replicas_->count_synced(offset);
}

void Leader::request_acks() {
  acks_are_wanted_ = true;
  pump_->wake();
}

uint64_t Leader::end_stream() {
  const std::scoped_lock lock(mutex_);
  // If writes are no longer held, the handover has been cancelled meanwhile.
  const bool is_resigning = pause_.has(PauseGate::Hold::kResigning);
  if (is_resigning && !replication_.is_replica() && !replicas_->empty()) {
    parts_.journal.publish_to_replicas(kGetAck);
    pump_->wake();
  }
  return replication_.offset();
}

size_t Leader::count() const {
  const std::scoped_lock lock(mutex_);
  return replicas_->size();
}

int64_t Leader::count_good() const {
  const std::scoped_lock lock(mutex_);
  return replicas_->count_good(parts_.config.integer(OptionId::kMinReplicasMaxLag),
                               parts_.clock.monotonic_us());
}

std::vector<Leader::Description> Leader::describe() const {
  const std::scoped_lock lock(mutex_);
  const int64_t now_us = parts_.clock.monotonic_us();
  std::vector<Description> all;
  for (const auto& [id, replica] : replicas_->all()) {
    const auto link = links_.find(id);
    if (link == links_.end()) continue;
    const ReplicaTraits& traits = replica.traits;
    const bool is_online = replica.state == ReplicaState::kOnline;
    all.push_back({traits.address.empty() ? host_of(link->second->client->address) : traits.address,
                   traits.port, traits.node_id, replica.state, replica.acked,
                   is_online ? (now_us - replica.ack_us) / core::kSecondUs : 0, replica.log_works});
  }
  return all;
}

void Leader::reset_counters() {
  for (auto* counter : {&counters_.full_syncs, &counters_.partial_syncs,
                        &counters_.refused_partial_syncs, &counters_.output_bytes}) {
    *counter = 0;
  }
}

void Leader::update_write_gate() {
  const std::scoped_lock lock(mutex_);
  update_write_gate_locked(parts_.clock.monotonic_us());
}

void Leader::update_write_gate_locked(int64_t now_us) {
  const int64_t wanted = parts_.config.integer(OptionId::kMinReplicasToWrite);
  const int64_t lag_s = parts_.config.integer(OptionId::kMinReplicasMaxLag);
  const bool are_too_few = wanted > 0 && lag_s > 0 && !replication_.is_replica() &&
                           replicas_->count_good(lag_s, now_us) < wanted;
  parts_.durability.availability.set(Availability::kTooFewReplicas, are_too_few);
}

void Leader::run() {
  while (true) {
    std::optional<ReplicaBatch> batch;
    bool is_wanted = true;
    {
      const std::scoped_lock lock(mutex_);
      if (is_stopping_) return;
      const int64_t now_us = parts_.clock.monotonic_us();
      if (snapshot_ && snapshot_->result) finish_snapshot(now_us);
      is_wanted = !snapshot_ || replicas_->has_any(snapshot_->batch);
      if (!snapshot_ && now_us >= times_.next_snapshot_us) {
        batch = replicas_->due(snapshot_policy(parts_.config), now_us);
      }
    }
    if (!is_wanted) parts_.durability.saves.transfers.cancel();
    if (batch) begin_snapshot(*batch);
    const auto flows = step();
    finish(pump_->pump(flows));
    constexpr int kTickMs = 100;
    constexpr int kIdleMs = 1000;
    pump_->sleep(flows, count() == 0 ? kIdleMs : kTickMs,
                 [this] { return acks_are_wanted_ && may_ask(pause_, parts_.clock); });
  }
}

std::vector<StreamFlow> Leader::step() {
  const std::scoped_lock lock(mutex_);
  const int64_t now_us = parts_.clock.monotonic_us();
  drop_foreign(now_us);
  add_to_stream(now_us);
  if (now_us >= times_.next_second_us) {
    times_.next_second_us = now_us + core::kSecondUs;
    on_second(now_us);
  }
  drop_slow_replicas(now_us);
  std::vector<StreamFlow> flows;
  for (const auto& [id, link] : links_) {
    const Replica* const replica = replicas_->find(id);
    // While a child process writes a snapshot to the socket, this process must not write to it.
    const bool child_owns_socket =
        replica->state == ReplicaState::kSnapshot && replica->form == SnapshotForm::kMarked;
    if (!child_owns_socket) flows.push_back({link, replica->state == ReplicaState::kOnline});
  }
  return flows;
}

void Leader::add_to_stream(int64_t now_us) {
  if (replication_.is_replica() || replicas_->empty()) {
    // The leader's thread does not sleep while the flag is set.
    acks_are_wanted_ = false;
    return;
  }
  // PING keeps links alive, and GETACK requests acknowledgements. During CLIENT PAUSE only PING is
  // added to the stream, as in Redis. Both are sent through the journal. If this server has become
  // a replica since the check above, the journal drops the command.
  if (may_ask(pause_, parts_.clock) && acks_are_wanted_.exchange(false)) {
    parts_.journal.publish_to_replicas(kGetAck);
  }
  // The period is counted from the last PING, because repl-ping-replica-period may change at any
  // time.
  const int64_t period_s = parts_.config.integer(OptionId::kReplPingReplicaPeriod);
  if (times_.last_ping_us != 0 && now_us < times_.last_ping_us + period_s * core::kSecondUs) return;
  if (times_.last_ping_us != 0 && !pause_.ends_stream()) parts_.journal.publish_to_replicas(kPing);
  times_.last_ping_us = now_us;
}

void Leader::on_second(int64_t now_us) {
  for (const auto& [id, link] : links_) {
    // A loading replica sends empty lines as keepalives, which are not acknowledgements.
    const int64_t silent_us = now_us - link->client->last_interaction_us;
    if (silent_us < core::kSecondUs) replicas_->heard(id, now_us);
  }
  for (const auto id :
       replicas_->timed_out(parts_.config.integer(OptionId::kReplTimeout), now_us)) {
    drop(id, "nothing was heard of it for repl-timeout");
  }
  for (const auto id : replicas_->keep_alive()) links_.at(id)->say("\n");
  update_write_gate_locked(now_us);
  const int64_t ttl_s = parts_.config.integer(OptionId::kReplBacklogTtl);
  if (links_.empty() && ttl_s > 0 && backlog_.is_active() && !replication_.is_replica() &&
      now_us - times_.last_replica_us > ttl_s * core::kSecondUs) {
    replication_.end_backlog();
    log_notice("The replication backlog is freed: no replica has been there for {} s", ttl_s);
  }
}

void Leader::drop_slow_replicas(int64_t now_us) {
  BufferLimit limit = parts_.config.output_buffer_limit(ClientClass::kReplica);
  // The output limit of a replica is at least the size of the backlog. Otherwise replicas that have
  // just resumed from the backlog would be disconnected.
  const auto backlog_size = static_cast<int64_t>(backlog_.size_bytes());
  if (limit.hard_bytes > 0) limit.hard_bytes = std::max(limit.hard_bytes, backlog_size);
  if (limit.soft_bytes > 0) limit.soft_bytes = std::max(limit.soft_bytes, backlog_size);
  const int64_t timeout_us = parts_.config.integer(OptionId::kReplTimeout) * core::kSecondUs;
  for (const auto& [id, link] : links_) {
    const uint64_t end = backlog_.end_offset();
    uint64_t behind = link->cursor ? end - std::min(end, link->offset) : 0;
    // Filters that are deleted during a snapshot stay in memory until the slowest replica has read
    // the snapshot. The output limit of each replica that reads the snapshot also covers this
    // memory.
    if (snapshot_ != nullptr && std::ranges::count(snapshot_->batch.ids, id) > 0) {
      behind += core::bloom::kept_array_bytes();
    }
    if (link->output_limit.is_broken(behind, limit, now_us)) {
      drop(id, "it is too far behind (client-output-buffer-limit)");
      return;
    }
    if (replicas_->find(id)->state == ReplicaState::kFile && now_us - link->moved_us > timeout_us) {
      return drop(id, "it takes nothing of its snapshot");
    }
  }
}

void Leader::finish(const PumpOutcome& outcome) {
  counters_.output_bytes += outcome.sent_bytes;
  if (outcome.file_sent.empty() && outcome.gone.empty()) return;
  const std::scoped_lock lock(mutex_);
  for (const LinkPtr& link : outcome.file_sent) finish_file(link->client->id);
  for (const LinkPtr& link : outcome.gone) {
    log_notice("The connection with replica {} is lost", link->client->address);
    drop(link->client->id, "");
  }
}

void Leader::begin_snapshot(const ReplicaBatch& batch) {
  const std::string mark = random_id();
  // The file's name contains the id of the process that chooses it. The parent chooses it before
  // the fork, so that parent and child use the same name.
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
  const auto started = parts_.durability.saves.transfers.start(std::move(transfer));
  if (started) return;
  const std::scoped_lock lock(mutex_);
  // If the fork failed, transfer.finished() has stored the error in snapshot_->result, and
  // finish_snapshot() disconnects the replicas that wait for it. If start() failed before the fork,
  // no result is stored. The snapshot is dropped here, and the leader soon tries again.
  if (!snapshot_->result) snapshot_.reset();
  constexpr int64_t kRetryUs = 100'000;
  constexpr int64_t kRetryForMemoryUs = 10 * core::kSecondUs;
  const bool lacks_memory = started.error().code == core::ErrorCode::kOutOfMemory;
  if (lacks_memory) log_warning("No snapshot for replicas now: {}", started.error().message);
  times_.next_snapshot_us =
      parts_.clock.monotonic_us() + (lacks_memory ? kRetryForMemoryUs : kRetryUs);
}

core::Result<std::vector<Leader::LinkPtr>> Leader::prepare_snapshot(
    const persistence::RdbReplicationInfo& position) {
  const std::scoped_lock lock(mutex_);
  // All stripes are locked between this check and the fork. So no command can add a filter that
  // foreign replicas do not support.
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
  // The new replicas have received no SELECT. So SELECT must precede the first command that follows
  // the snapshot in the stream.
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
    if (replicas_->has_any(snapshot.batch)) {
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
      log_notice("{} has its snapshot, all that it wanted", link->client->address);
      drop(id, "");
    }
  }
  // The snapshot's file can be removed now, because each connection that sends it has opened it.
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
