// SPDX-License-Identifier: MIT
#include "server/replication/stream/replication.h"

#include <algorithm>

#include "persistence/journal.h"
#include "server/config/config.h"
#include "server/durability/durability.h"
#include "server/process/server_state.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/own_expiries.h"
#include "server/replication/stream/stream_listener.h"

namespace server {

Replication::Replication(const Parts& parts)
    : parts_(parts),
      backlog_(std::make_unique<Backlog>()),
      own_expiries_(std::make_unique<OwnExpiries>()) {
  const auto apply_backlog_size = [this]() -> core::Result<> {
    backlog_->set_size(static_cast<uint64_t>(parts_.config.integer(OptionId::kReplBacklogSize)));
    return {};
  };
  (void)apply_backlog_size();
  parts_.config.on_change(OptionId::kReplBacklogSize, apply_backlog_size);
  for (const OptionId id : {OptionId::kReplicaReadOnly, OptionId::kReplicaServeStaleData}) {
    parts_.config.on_change(id, [this]() -> core::Result<> {
      update_availability();
      return {};
    });
  }
  if (!parts_.config.text(OptionId::kReplicaOf).empty()) set_role(true);
  parts_.durability.set_stream(this);
  update_availability();
}

Replication::~Replication() {
  parts_.durability.set_stream(nullptr);
  parts_.journal.set_second_sink(nullptr);
}

bool Replication::is_replica() const {
  return parts_.state.is_replica.load(std::memory_order_acquire);
}

uint64_t Replication::offset() const {
  return backlog_->end_offset();
}

void Replication::note_own_change() {
  if (parts_.config.flag(OptionId::kReplicaReadOnly)) has_own_changes_ = true;
}

void Replication::note_own_key(unsigned database, std::string_view key) {
  if (!parts_.config.flag(OptionId::kReplicaReadOnly)) own_expiries_->note(database, key);
}

void Replication::restate_database() {
  if (!is_replica()) parts_.journal.restate_database();
}

ReplicationIds Replication::ids() const {
  const std::scoped_lock lock(ids_mutex_);
  return ids_;
}

void Replication::restore(const persistence::RdbReplicationInfo& position) {
  if (!is_replication_id(position.id) || position.offset < 0) return;
  const auto offset = static_cast<uint64_t>(position.offset);
  stream_database_ = static_cast<unsigned>(std::max<int64_t>(0, position.stream_database));
  stream_is_foreign_ = is_replica() && position.is_foreign;
  {
    const std::scoped_lock lock(ids_mutex_);
    ids_.id = position.id;
    if (!is_replica()) position.is_ahead ? ids_.begin_anew() : ids_.shift(offset);
  }
  backlog_->begin(offset);
  if (!is_replica()) parts_.journal.set_second_sink(backlog_.get());
}

void Replication::begin_backlog() {
  const std::scoped_lock role_lock(role_mutex_);
  if (backlog_->is_active()) return;
  if (is_replica()) return backlog_->begin(backlog_->end_offset());
  {
    // Bytes written without a backlog are not counted in the offset, so a new history begins.
    const std::scoped_lock lock(ids_mutex_);
    ids_.begin_anew();
  }
  backlog_->begin(backlog_->end_offset());
  parts_.journal.restate_database();
  parts_.journal.set_second_sink(backlog_.get());
}

void Replication::end_backlog() {
  const std::scoped_lock role_lock(role_mutex_);
  if (is_replica()) return;
  parts_.journal.set_second_sink(nullptr);
  backlog_->end();
  const std::scoped_lock lock(ids_mutex_);
  ids_.begin_anew();
}

void Replication::hold_stream() {
  const std::scoped_lock role_lock(role_mutex_);
  parts_.journal.set_second_sink(nullptr);
}

void Replication::release_stream() {
  const std::scoped_lock role_lock(role_mutex_);
  // Changes that a replica applies are in its leader's stream already, so the journal feeds only a
  // leader's backlog.
  if (!is_replica() && backlog_->is_active()) parts_.journal.set_second_sink(backlog_.get());
}

void Replication::set_role(bool is_replica) {
  parts_.state.is_replica = is_replica;
  parts_.state.listeners.set(ChangeListeners::kOwnChanges, is_replica);
}

void Replication::become_replica() {
  // The writes of an open transaction so far are only in the own log.
  if (persistence::Journal::has_open_group()) note_divergence();
  {
    const std::scoped_lock role_lock(role_mutex_);
    parts_.journal.set_second_sink(nullptr);
    set_role(true);
    ++demotions_;
    link_is_up_ = false;
    if (!backlog_->is_active()) backlog_->begin(backlog_->end_offset());
  }
  update_availability();
}

void Replication::become_leader() {
  {
    const std::scoped_lock lock(ids_mutex_);
    // From here on the stream contains effects. Replicas that followed the foreign stream would
    // interpret it differently.
    if (stream_is_foreign_ || has_own_changes_) {
      ids_.begin_anew();
    } else {
      ids_.shift(offset());
    }
  }
  stream_is_foreign_ = false;
  has_own_changes_ = false;
  own_expiries_->clear();
  {
    const std::scoped_lock role_lock(role_mutex_);
    set_role(false);
    if (!backlog_->is_active()) backlog_->begin(backlog_->end_offset());
    parts_.journal.restate_database();
    parts_.journal.set_second_sink(backlog_.get());
  }
  update_availability();
  tell_stream_replaced();
}

void Replication::adopt(const persistence::RdbReplicationInfo& position) {
  {
    const std::scoped_lock lock(ids_mutex_);
    ids_ = {position.id, std::string(kReplicationIdSize, '0'), -1};
  }
  backlog_->begin(static_cast<uint64_t>(position.offset));
  stream_database_ = static_cast<unsigned>(position.stream_database);
  stream_is_foreign_ = position.is_foreign;
  has_own_changes_ = false;
  own_expiries_->clear();
  tell_stream_replaced();
}

void Replication::forget_history() {
  const std::scoped_lock lock(ids_mutex_);
  ids_.begin_anew();
}

void Replication::continue_as(std::string_view new_id) {
  {
    const std::scoped_lock lock(ids_mutex_);
    if (ids_.id == new_id) return;
    ids_.shift_to(new_id, offset());
  }
  tell_stream_replaced();
}

void Replication::append_applied(std::string_view bytes, unsigned database) {
  stream_database_ = database;
  backlog_->append(bytes);
}

void Replication::set_link_up(bool is_up) {
  link_is_up_ = is_up;
  update_availability();
}

void Replication::update_availability() {
  const auto set = [this](Availability::Trouble trouble, bool is_so) {
    if (is_so) {
      parts_.durability.availability.begin(trouble);
    } else {
      parts_.durability.availability.end(trouble);
    }
  };
  set(Availability::kReadOnlyReplica,
      is_replica() && parts_.config.flag(OptionId::kReplicaReadOnly));
  set(Availability::kStaleReplica,
      is_replica() && !link_is_up_ && !parts_.config.flag(OptionId::kReplicaServeStaleData));
  if (listener_ != nullptr) listener_->update_write_gate();
}

void Replication::tell_stream_replaced() const {
  if (listener_ != nullptr) listener_->on_stream_replaced();
}

std::optional<persistence::RdbReplicationInfo> Replication::position() const {
  if (!backlog_->is_active()) return std::nullopt;
  // A leader states the database again before the next command.
  const auto database = is_replica() ? stream_database_.load() : 0;
  return persistence::RdbReplicationInfo{
      database, ids().id, static_cast<int64_t>(backlog_->end_offset()), stream_is_foreign_};
}

}  // namespace server
