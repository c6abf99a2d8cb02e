// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "core/clock.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/transport/tls.h"
#include "server/durability/durability.h"
#include "server/durability/loading/data_replacer.h"
#include "server/durability/log/append_log.h"
#include "server/replication/replica/snapshot_check.h"
#include "server/replication/stream/replication.h"
#include "server/replication/stream/stream_applier.h"
#include "server/session/clients.h"
#include "server/session/replayer.h"

namespace server {
namespace {

constexpr size_t kReceiveBytes = size_t{256} << 10;
// Longest wait for bytes. After it, the session checks the clock and whether it was cancelled.
constexpr std::chrono::milliseconds kStep{100};
constexpr int64_t kKeepAliveEveryUs = core::kSecondUs;

// Returns whether this server's append log accepts more data. If this has changed since the last
// call, logs the change and marks the link up or down. The link counts as down while the log fails.
bool own_log_keeps_up(const ReplicaSession::Parts& parts,
                      const ReplicaSession::Surroundings& surroundings) {
  const auto takes = parts.durability.append_log.takes_more();
  if (takes.has_value() == parts.replication.link_is_up()) return takes.has_value();
  const std::scoped_lock lock(parts.replication.apply_mutex());
  if (!surroundings.is_wanted()) return takes.has_value();
  parts.replication.set_link_up(takes.has_value());
  if (takes) {
    log_notice("The append log takes what the leader sends again");
  } else {
    surroundings.figures.down_since_us = parts.clock.monotonic_us();
    log_notice("Nothing more is taken from the leader for now: {}", takes.error().message);
  }
  return takes.has_value();
}

}  // namespace

ReplicaSession::ReplicaSession(const Parts& parts, const Surroundings& surroundings)
    : parts_(parts),
      surroundings_(surroundings),
      figures_(surroundings.figures),
      socket_(&surroundings.waker),
      received_(kReceiveBytes, '\0'),
      snapshot_path_(persistence::received_snapshot_name(::getpid())),
      log_(parts.durability) {}

ReplicaSession::~ReplicaSession() {
  if (client_ != nullptr) parts_.clients.remove(client_->id);
  if (snapshot_ == nullptr) return;
  snapshot_.reset();
  (void)parts_.files.remove(snapshot_path_);
}

int64_t ReplicaSession::now_us() const {
  return parts_.clock.monotonic_us();
}

ReplicaProtocol::Request ReplicaSession::request_of(const Target& target) const {
  const Config& config = parts_.config;
  ReplicaProtocol::Request request;
  request.user = config.text(OptionId::kMasterUser);
  request.password = config.text(OptionId::kMasterAuth);
  const int64_t announced_port = config.integer(OptionId::kReplicaAnnouncePort);
  const int64_t tls_port =
      config.flag(OptionId::kTlsReplication) ? config.integer(OptionId::kTlsPort) : 0;
  const int64_t own_port = tls_port != 0 ? tls_port : config.port();
  request.listening_port = static_cast<uint16_t>(announced_port != 0 ? announced_port : own_port);
  request.announced_address = config.text(OptionId::kReplicaAnnounceIp);
  request.takes_over = target.takes_over;
  request.cluster_epoch = parts_.replication.cluster_place().epoch;
  request.cluster_node = parts_.replication.cluster_place().node_id;
  request.timeout_us = config.integer(OptionId::kReplTimeout) * core::kSecondUs;
  const std::scoped_lock lock(parts_.replication.apply_mutex());
  if (parts_.replication.has_diverged()) return request;
  request.id = parts_.replication.ids().id;
  request.offset = static_cast<int64_t>(parts_.replication.offset());
  return request;
}

core::Result<> ReplicaSession::connect(const Target& target) {
  ClientSocket::Target leader{.host = target.host, .port = target.port};
  leader.source_address = parts_.config.text(OptionId::kBindSourceAddr);
  leader.uses_tls = parts_.config.flag(OptionId::kTlsReplication) && parts_.tls != nullptr;
  if (leader.uses_tls) leader.tls = parts_.tls->client_context();
  const std::chrono::seconds timeout(parts_.config.integer(OptionId::kReplTimeout));
  auto connected = socket_.connect(leader, WaitLimit(timeout));
  if (connected) return connected;
  return core::Error{fmt::format("connect to '{}': {}{}", target.host, connected.error().message,
                                 leader.uses_tls ? " (tls-replication)" : "")};
}

core::Error ReplicaSession::run(const Target& target) {
  figures_.state = ReplicaLinkState::kConnecting;
  if (auto connected = connect(target); !connected) return connected.error();
  if (!surroundings_.is_wanted()) return {"the role has changed"};
  figures_.state = ReplicaLinkState::kHandshake;
  figures_.last_received_us = now_us();
  list_link(target);
  link_.emplace(request_of(target), now_us());
  for (;;) {
    if (auto done = step(); !done) return done.error();
  }
}

void ReplicaSession::list_link(const Target& target) {
  client_ = std::make_shared<Client>(parts_.clients.next_id());
  client_->peer = Peer::kLeader;
  client_->names.change([](ClientNames::Values& names) { names.user = kLeaderUser; });
  client_->address = fmt::format("{}:{}", target.host, target.port);
  client_->created_us = now_us();
  client_->last_interaction_us = now_us();
  // CLIENT KILL calls this function to wake the session. The waker outlives every session.
  client_->wake = [&waker = surroundings_.waker] { waker.wake(); };
  parts_.clients.add(client_);
}

core::Result<> ReplicaSession::step() {
  report_log();
  // Pause reading while the append log cannot be written. Otherwise applied data would be
  // acknowledged without being saved, and would pile up in memory.
  const bool is_held =
      link_->phase() == ReplicaProtocol::Phase::kStream && !own_log_keeps_up(parts_, surroundings_);
  if (is_held) return wait_for_own_log();
  link_->tick(now_us());
  if (auto handled = handle_events(); !handled) return handled;
  if (auto sent = socket_.send(link_->take_output()); !sent) return sent;
  const auto count = socket_.receive(received_, kStep);
  // The waker must be drained before check_wanted() reads the flags that the waker signals.
  // Otherwise the signal for a flag that is set between the read and the drain would be lost.
  if (count && *count == 0) surroundings_.waker.drain();
  if (auto wanted = check_wanted(); !wanted) return wanted;
  if (!count) return count.error();
  if (*count == 0) return {};
  client_->last_interaction_us = now_us();
  figures_.last_received_us = now_us();
  link_->receive(std::string_view(received_).substr(0, *count), now_us());
  return handle_events();
}

core::Result<> ReplicaSession::wait_for_own_log() {
  send_keep_alive();
  link_->tick(now_us());
  if (auto sent = socket_.send(link_->take_output()); !sent) return sent;
  surroundings_.waker.wait(kStep.count());
  return check_wanted();
}

core::Result<> ReplicaSession::check_wanted() const {
  if (!surroundings_.is_wanted()) return core::Error{"the role has changed"};
  if (client_->kill_requested) return core::Error{"it was killed by a client"};
  return {};
}

core::Result<> ReplicaSession::handle_events() {
  using Event = ReplicaProtocol::Event;
  core::Result<> handled;
  while (handled && link_->phase() != ReplicaProtocol::Phase::kStream) {
    const Event event = link_->next();
    if (event == Event::kNone) return {};
    handled = handle(event);
  }
  if (handled) handled = apply_units();
  is_refused_ = !handled && is_served_;
  return handled;
}

LinkFailures::Kind ReplicaSession::failure_kind() const {
  if (refuses_data_) return LinkFailures::Kind::kRefused;
  if (is_refused_ && link_->snapshot_received() > 0) return LinkFailures::Kind::kInVain;
  if (is_refused_) return LinkFailures::Kind::kUnusable;
  const bool has_streamed = was_up_ && link_->received_offset() > stream_begin_;
  return has_streamed ? LinkFailures::Kind::kCut : LinkFailures::Kind::kNoLink;
}

core::Result<> ReplicaSession::handle(ReplicaProtocol::Event event) {
  switch (event) {
    case ReplicaProtocol::Event::kFullSync:
      surroundings_.on_accepted();
      return begin_snapshot();
    case ReplicaProtocol::Event::kSnapshotBytes:
      return write_snapshot();
    case ReplicaProtocol::Event::kSnapshotEnd:
      return finish_snapshot();
    case ReplicaProtocol::Event::kContinue:
      return go_on();
    case ReplicaProtocol::Event::kFailed:
      return core::Error{link_->failure()};
    case ReplicaProtocol::Event::kUnit:
    case ReplicaProtocol::Event::kNone:
      break;
  }
  return {};
}

core::Result<> ReplicaSession::begin_snapshot() {
  is_served_ = true;
  log_notice("Full resync from the leader: {}:{}", link_->id(), link_->offset());
  figures_.state = ReplicaLinkState::kSync;
  figures_.sync_size = -1;
  figures_.sync_received = 0;
  auto file = parts_.files.open_append(snapshot_path_, persistence::OpenMode::kCreate);
  if (!file) return file.error();
  snapshot_ = std::move(*file);
  snapshot_space_.emplace(parts_.files, persistence::directory_of(snapshot_path_));
  return {};
}

core::Result<> ReplicaSession::write_snapshot() {
  figures_.sync_size = link_->snapshot_size();
  figures_.sync_received = static_cast<int64_t>(link_->snapshot_received());
  auto fits = snapshot_space_->check(link_->snapshot_received(), link_->snapshot_size());
  if (!fits) return fits;
  return snapshot_->write(link_->snapshot_bytes());
}

core::Result<> ReplicaSession::finish_snapshot() {
  snapshot_space_.reset();
  log_notice("Received {} bytes of a snapshot from the leader", link_->snapshot_received());
  if (auto synced = snapshot_->sync(); !synced) return synced;
  send_keep_alive();
  SnapshotCheck check;
  check.skips_foreign_types = parts_.config.integer(OptionId::kRdbForeignTypes) != 0;
  check.checks_sum = parts_.config.flag(OptionId::kRdbChecksum);
  check.database_count = static_cast<uint64_t>(parts_.config.database_count());
  check.on_piece = [this] { send_keep_alive(); };
  const auto facts = check_snapshot(parts_.files, snapshot_path_, check);
  if (!facts) {
    refuses_data_ = true;
    return core::Error{
        fmt::format("the leader's snapshot is not taken, the data stays as it is: {}",
                    facts.error().message),
        facts.error().code};
  }
  auto replaced = parts_.durability.replace_data(replacement_by(*facts, check.on_piece));
  if (!replaced) return replaced;
  snapshot_.reset();
  ++figures_.full_syncs;
  {
    const std::scoped_lock lock(parts_.replication.apply_mutex());
    if (!surroundings_.is_wanted()) return core::Error{"the role has changed"};
    record_link_up();
  }
  link_->loaded(now_us());
  return {};
}

Replacement ReplicaSession::replacement_by(const SnapshotFacts& facts,
                                           const std::function<void()>& on_piece) {
  Replacement replacement;
  replacement.path = snapshot_path_;
  replacement.may_begin = [this] {
    if (!surroundings_.is_wanted()) return false;
    parts_.replication.begin_replacement();
    return true;
  };
  replacement.is_wanted = surroundings_.is_wanted;
  replacement.on_piece = on_piece;
  replacement.on_loaded = [this, facts] {
    const bool has_id = !link_->id().empty();
    parts_.replication.adopt({facts.stream_database, has_id ? link_->id() : random_id(),
                              link_->offset(), !facts.has_own_stream});
    begin_stream(facts.has_own_stream, static_cast<unsigned>(facts.stream_database));
  };
  auto& place = parts_.replication.cluster_place();
  replacement.on_kept = [&place] { place.is_torn = false; };
  // If the load fails, the keyspace is empty, so the history of the old data is forgotten.
  replacement.on_lost = [this, &place] {
    parts_.replication.adopt({0, random_id(), 0, false});
    place.is_torn = true;
    place.history_epoch = 0;
  };
  return replacement;
}

core::Result<> ReplicaSession::go_on() {
  bool changes_kind = false;
  {
    const std::scoped_lock lock(parts_.replication.apply_mutex());
    if (!surroundings_.is_wanted()) return core::Error{"the role has changed"};
    // A server of another kind that was promoted continues the history of a Bloomery. But the
    // commands that it adds are requests, and not effects.
    changes_kind = link_->leader_is_foreign() && !parts_.replication.stream_is_foreign();
    changes_kind ? parts_.replication.record_divergence() : continue_stream();
  }
  surroundings_.on_accepted();
  if (!changes_kind) return {};
  return core::Error{
      "the leader continues the history of a Bloomery and is none: all data are "
      "requested again"};
}

// REQUIRES: apply_mutex() is held.
void ReplicaSession::continue_stream() {
  is_served_ = true;
  if (!surroundings_.failures.is_repeating()) {
    log_notice("The leader goes on at offset {} with {}", link_->offset(), link_->id());
  }
  parts_.replication.continue_as(link_->id());
  ++figures_.partial_syncs;
  begin_stream(!parts_.replication.stream_is_foreign(), parts_.replication.stream_database());
  record_link_up();
}

// Prepares to apply the stream. REQUIRES: apply_mutex() is held.
void ReplicaSession::begin_stream(bool has_own_stream, unsigned database) {
  const auto origin = has_own_stream ? CommandOrigin::kOwnJournal : CommandOrigin::kForeignJournal;
  applier_ = std::make_unique<StreamApplier>(surroundings_.make_replayer(origin), origin, database,
                                             figures_.stream, parts_.config);
  log_.begin(link_->offset());
  stream_begin_ = link_->offset();
  figures_.read_offset = link_->offset();
}

// Records that the link works. Must be called after clients have gained access to the received
// data. REQUIRES: apply_mutex() is held.
void ReplicaSession::record_link_up() {
  figures_.state = ReplicaLinkState::kConnected;
  was_up_ = true;
  parts_.replication.set_link_up(true);
}

// Applies all commands and transactions received so far under one lock. So a snapshot of this
// server is taken before or after all of them.
core::Result<> ReplicaSession::apply_units() {
  {
    const std::scoped_lock lock(parts_.replication.apply_mutex());
    if (!surroundings_.is_wanted()) return core::Error{"the role has changed"};
    if (parts_.replication.has_diverged()) {
      return core::Error{"this replica has changes of its own: it needs a full sync"};
    }
    for (auto event = link_->next(); event != ReplicaProtocol::Event::kNone;
         event = link_->next()) {
      if (link_->needs_full_sync()) {
        parts_.replication.record_divergence();
        refuses_data_ = true;
      }
      if (event != ReplicaProtocol::Event::kUnit) return core::Error{link_->failure()};
      if (auto applied = apply_unit(); !applied) return applied;
    }
  }
  figures_.read_offset = link_->received_offset();
  log_.record_applied(link_->offset());
  return {};
}

void ReplicaSession::record_progress() {
  if (std::exchange(made_progress_, true)) return;
  const uint64_t failures = surroundings_.failures.record_progress(now_us());
  if (failures > 1) log_notice("The link to the leader works again after {} attempts", failures);
}

// Applies the command or transaction that the protocol has returned. REQUIRES: apply_mutex() is
// held.
core::Result<> ReplicaSession::apply_unit() {
  const StreamSplitter& unit = link_->unit();
  if (!link_->is_unit_of_link()) {
    const auto unserved = parts_.config.integer(OptionId::kRdbForeignTypes) == 0
                              ? StreamApplier::Unserved::kRefuse
                              : StreamApplier::Unserved::kSkip;
    if (auto applied = applier_->apply(unit.commands(), unserved); !applied) {
      if (applier_->has_diverged()) parts_.replication.record_divergence();
      refuses_data_ = true;
      return applied;
    }
  }
  parts_.replication.append_applied(unit.bytes(), applier_->database());
  record_progress();
  return {};
}

void ReplicaSession::send_keep_alive() {
  if (now_us() < next_keep_alive_us_) return;
  next_keep_alive_us_ = now_us() + kKeepAliveEveryUs;
  link_->keep_alive(now_us());
  // The result is ignored: if the connection is lost, the next receive() fails.
  (void)socket_.send(link_->take_output());
}

void ReplicaSession::report_log() {
  if (link_->phase() != ReplicaProtocol::Phase::kStream) return;
  link_->set_log({log_.synced_offset(), parts_.durability.append_log.fails()});
}

}  // namespace server
