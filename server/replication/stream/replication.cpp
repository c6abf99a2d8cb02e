// SPDX-License-Identifier: MIT
#include "server/replication/stream/replication.h"

#include <algorithm>

#include "persistence/aof/aof_format.h"
#include "persistence/aof/batch_lines.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/durability/log/append_log.h"
#include "server/durability/log/log_files.h"
#include "server/replication/stream/stream_feed.h"

namespace server {

Replication::Replication(const Parts& parts)
    : parts_(parts), feed_(std::make_unique<StreamFeed>(parts.journal, backlog_)) {
  parts_.config.follow(OptionId::kReplBacklogSize, [this] {
    backlog_.set_size(static_cast<uint64_t>(parts_.config.integer(OptionId::kReplBacklogSize)));
  });
  if (!parts_.config.text(OptionId::kReplicaOf).empty()) set_role(true);
  parts_.durability.set_stream(this);
  parts_.durability.append_log.files().writer().lines().set_position_source(
      [this](uint64_t journal_end) { return position_line(journal_end); });
  parts_.config.follow({OptionId::kReplicaReadOnly, OptionId::kReplicaServeStaleData},
                       [this] { update_availability(); });
}

Replication::~Replication() {
  parts_.durability.set_stream(nullptr);
  parts_.durability.append_log.files().writer().lines().set_position_source(
      [](uint64_t) { return std::string(); });
  feed_->pause();
}

bool Replication::is_replica() const {
  return parts_.state.is_replica.load(std::memory_order_acquire);
}

void Replication::record_own_change() {
  if (parts_.config.flag(OptionId::kReplicaReadOnly)) has_own_changes_ = true;
}

void Replication::record_own_key(unsigned database, std::string_view key) {
  if (!parts_.config.flag(OptionId::kReplicaReadOnly)) own_expiries_.record(database, key);
}

void Replication::restate_database() {
  if (!is_replica()) parts_.journal.restate_database();
}

void Replication::restore(const persistence::RdbReplicationInfo& position) {
  if (!is_replication_id(position.id) || position.offset < 0) return;
  const auto offset = static_cast<uint64_t>(position.offset);
  const std::scoped_lock role_lock(feed_->mutex());
  stream_is_foreign_ = is_replica() && position.is_foreign;
  cluster_place_.history_epoch = position.epoch;
  ids_.change([&](ReplicationIds& ids) { ids.id = position.id; });
  backlog_.begin(offset);
  feed_->record_applied(static_cast<unsigned>(std::max<int64_t>(0, position.stream_database)));
  if (is_replica()) return;
  feed_->restore(offset, position.is_ahead);
  feed_->begin();
  if (parts_.state.is_in_cluster()) return;
  ids_.change([this](ReplicationIds& ids) { feed_->lead_restored(ids); });
}

void Replication::lead_restored() {
  const std::scoped_lock role_lock(feed_->mutex());
  ids_.change([this](ReplicationIds& ids) { feed_->lead_restored(ids); });
}

std::string Replication::position_line(uint64_t journal_end) {
  std::string line;
  const std::scoped_lock role_lock(feed_->mutex());
  const bool is_known = is_replica() ? feed_->is_applied_up_to(journal_end) : feed_->is_on();
  if (!is_known || !backlog_.is_active() || stream_is_foreign_ || has_diverged()) return line;
  persistence::RdbReplicationInfo here{.stream_database = feed_->database(), .id = ids().id};
  const uint64_t led_epoch = feed_->is_on() ? cluster_place_.led_epoch.load() : 0;
  here.epoch = led_epoch != 0 ? led_epoch : cluster_place_.history_epoch.load();
  bool is_end = false;
  parts_.journal.look_at_ends([&](uint64_t log_end, std::optional<unsigned> database) {
    is_end = log_end == journal_end;
    here.offset = static_cast<int64_t>(backlog_.end_offset());
    // If the stream has not selected a database yet, any number may be used here. A SELECT will
    // precede the next command in the stream.
    if (feed_->is_on()) here.stream_database = database.value_or(0);
  });
  if (is_end) persistence::append_position_line(line, here);
  return line;
}

void Replication::begin_backlog() {
  const std::scoped_lock role_lock(feed_->mutex());
  if (backlog_.is_active()) return;
  if (is_replica()) return backlog_.begin(backlog_.end_offset());
  // Bytes written without a backlog are not counted in the offset, so a new history begins.
  ids_.change([](ReplicationIds& ids) { ids.renew_ids(); });
  backlog_.begin(backlog_.end_offset());
  parts_.journal.restate_database();
  feed_->begin();
}

void Replication::end_backlog() {
  const std::scoped_lock role_lock(feed_->mutex());
  if (is_replica()) return;
  feed_->pause();
  backlog_.end();
  ids_.change([](ReplicationIds& ids) { ids.renew_ids(); });
}

void Replication::hold_stream() {
  const std::scoped_lock role_lock(feed_->mutex());
  feed_->pause();
}

void Replication::release_stream() {
  const std::scoped_lock role_lock(feed_->mutex());
  // Changes that a replica applies are in its leader's stream already, so the journal feeds only a
  // leader's backlog.
  if (!is_replica() && backlog_.is_active()) feed_->begin();
}

void Replication::set_role(bool is_replica) {
  parts_.state.is_replica = is_replica;
  parts_.state.listeners.set(ChangeListeners::kOwnChanges, is_replica);
}

void Replication::become_replica() {
  // The changes of a transaction that is being executed are not in the stream yet, so the data
  // differ from the stream.
  if (persistence::Journal::has_open_group()) record_divergence();
  {
    const std::scoped_lock role_lock(feed_->mutex());
    feed_->pause();
    if (feed_->restored_differs()) record_divergence();
    feed_->forget_restored();
    set_role(true);
    ++demotions_;
    link_is_up_ = false;
    feed_->record_applied(feed_->database());
    if (!backlog_.is_active()) backlog_.begin(backlog_.end_offset());
  }
  update_availability();
}

void Replication::become_leader() {
  ids_.change([this](ReplicationIds& ids) {
    // The new leader's stream contains the effects of commands. A replica that has followed
    // Redis or Valkey would execute these as Redis' commands. So a new history begins, which forces
    // such a replica into a full sync.
    if (stream_is_foreign_ || has_own_changes_) {
      ids.renew_ids();
    } else {
      ids.shift(offset());
    }
  });
  stream_is_foreign_ = false;
  has_own_changes_ = false;
  own_expiries_.clear();
  {
    const std::scoped_lock role_lock(feed_->mutex());
    set_role(false);
    if (!backlog_.is_active()) backlog_.begin(backlog_.end_offset());
    parts_.journal.restate_database();
    feed_->begin();
  }
  update_availability();
  on_stream_replaced();
}

void Replication::adopt(const persistence::RdbReplicationInfo& position) {
  {
    const std::scoped_lock role_lock(feed_->mutex());
    ids_.change([&](ReplicationIds& ids) {
      ids = {position.id, std::string(kReplicationIdSize, '0'), -1};
    });
    backlog_.begin(static_cast<uint64_t>(position.offset));
    ++demotions_;
    stream_is_foreign_ = position.is_foreign;
    cluster_place_.history_epoch = cluster_place_.epoch.load();
    cluster_place_.is_torn = false;
    has_own_changes_ = false;
    own_expiries_.clear();
    feed_->record_applied(static_cast<unsigned>(position.stream_database));
  }
  on_stream_replaced();
}

void Replication::begin_replacement() {
  const std::scoped_lock role_lock(feed_->mutex());
  feed_->forget_applied();
  cluster_place_.is_torn = true;
}

void Replication::continue_as(std::string_view new_id) {
  cluster_place_.history_epoch = cluster_place_.epoch.load();
  bool is_new = false;
  ids_.change([&](ReplicationIds& ids) {
    is_new = ids.id != new_id;
    if (is_new) ids.shift_to(new_id, offset());
  });
  if (is_new) on_stream_replaced();
}

void Replication::append_applied(std::string_view bytes, unsigned database) {
  const std::scoped_lock role_lock(feed_->mutex());
  backlog_.append(bytes);
  feed_->record_applied(database);
}

void Replication::set_link_up(bool is_up) {
  link_is_up_ = is_up;
  update_availability();
}

void Replication::update_availability() {
  Availability& availability = parts_.durability.availability;
  availability.set(Availability::kReadOnlyReplica,
                   is_replica() && parts_.config.flag(OptionId::kReplicaReadOnly));
  availability.set(
      Availability::kStaleReplica,
      is_replica() && !link_is_up_ && !parts_.config.flag(OptionId::kReplicaServeStaleData));
  on_role_changed();
}

unsigned Replication::stream_database() const {
  return feed_->database();
}

bool Replication::has_diverged() const {
  return has_own_changes_ || feed_->restored_differs();
}

std::optional<persistence::RdbReplicationInfo> Replication::position() const {
  if (!backlog_.is_active()) return std::nullopt;
  persistence::RdbReplicationInfo here{.stream_database = feed_->database(),
                                       .id = ids().id,
                                       .offset = static_cast<int64_t>(backlog_.end_offset()),
                                       .is_foreign = stream_is_foreign_};
  if (is_replica()) return here;
  parts_.journal.look_at_ends([&](uint64_t /*log_end*/, std::optional<unsigned> database) {
    here.offset = static_cast<int64_t>(backlog_.end_offset());
    // If the stream has not selected a database yet, any number may be used here. A SELECT will
    // precede the next command in the stream.
    here.stream_database = database.value_or(0);
  });
  return here;
}

}  // namespace server
