// SPDX-License-Identifier: MIT
#include "server/replication/leader/replicas.h"
#include "core/clock.h"

#include <algorithm>

namespace server {
namespace {

using State = Replica::State;

void enter(Replica& replica, State state, int64_t now_us) {
  replica.state = state;
  replica.since_us = now_us;
}

}  // namespace

void Replicas::add(Id id, const ReplicaTraits& traits, bool sends_acks, int64_t now_us) {
  replicas_[id] = {
      .traits = traits, .sends_acks = sends_acks, .since_us = now_us, .ack_us = now_us};
}

void Replicas::add_online(Id id, const ReplicaTraits& traits, uint64_t offset, int64_t now_us) {
  replicas_[id] = {.traits = traits,
                   .state = State::kOnline,
                   .has_loaded = true,
                   .since_us = now_us,
                   .ack_us = now_us,
                   .acked = offset};
}

const Replica* Replicas::find(Id id) const {
  const auto found = replicas_.find(id);
  return found == replicas_.end() ? nullptr : &found->second;
}

SnapshotForm Replicas::form_for(const Replica& replica, const Policy& policy) {
  const bool is_marked =
      replica.traits.takes_eof_mark && (policy.is_diskless || replica.traits.wants_no_keys);
  return is_marked ? SnapshotForm::kMarked : SnapshotForm::kFile;
}

// Returns whether a snapshot for the replica may start. A snapshot in a file starts without delay.
// A diskless snapshot waits for more replicas, because no replica can join it after its start. A
// member of this server's shard does not wait, so that a rolling restart of the cluster is faster.
bool Replicas::has_waited(const Replica& replica, const Policy& policy, int64_t now_us) {
  const bool is_of_own_shard = !replica.traits.node_id.empty();
  return !policy.is_diskless || !replica.traits.takes_eof_mark || is_of_own_shard ||
         now_us >= replica.since_us + policy.delay_s * core::kSecondUs;
}

std::optional<Replicas::Batch> Replicas::due(const Policy& policy, int64_t now_us) const {
  // The replica that has waited longest determines the form of the next snapshot: a file or a
  // diskless transfer.
  const auto waits = [](const auto& item) { return item.second.state == State::kWaits; };
  const bool are_enough =
      policy.count_max > 0 && std::ranges::count_if(replicas_, waits) >= policy.count_max;
  const Replica* first = nullptr;
  for (const auto& [id, replica] : replicas_) {
    if (replica.state != State::kWaits) continue;
    const bool is_first = first == nullptr || replica.since_us < first->since_us;
    if (is_first && (are_enough || has_waited(replica, policy, now_us))) first = &replica;
  }
  if (first == nullptr) return std::nullopt;
  Batch batch{{}, form_for(*first, policy), !first->traits.wants_no_keys, false};
  for (const auto& [id, replica] : replicas_) {
    if (replica.state == State::kWaits && form_for(replica, policy) == batch.form &&
        replica.traits.wants_no_keys == first->traits.wants_no_keys) {
      batch.ids.push_back(id);
      batch.is_exact |=
          batch.has_keys && !replica.traits.reads_effects && !replica.traits.wants_snapshot_only;
    }
  }
  return batch;
}

bool Replicas::has_any(const Batch& batch) const {
  return std::ranges::any_of(batch.ids, [this](Id id) { return replicas_.contains(id); });
}

void Replicas::begin(const Batch& batch, int64_t now_us) {
  for (const Id id : batch.ids) {
    const auto found = replicas_.find(id);
    if (found == replicas_.end()) continue;
    enter(found->second, State::kSnapshot, now_us);
    found->second.form = batch.form;
  }
}

std::vector<Replicas::Id> Replicas::finish_snapshot(const Batch& batch, int64_t now_us) {
  std::vector<Id> left;
  for (const Id id : batch.ids) {
    const auto found = replicas_.find(id);
    if (found == replicas_.end() || found->second.state != State::kSnapshot) continue;
    Replica& replica = found->second;
    const State sent = replica.has_loaded ? State::kOnline : State::kAwaitsAck;
    enter(replica, batch.form == SnapshotForm::kMarked ? sent : State::kFile, now_us);
    left.push_back(id);
  }
  return left;
}

void Replicas::go_online(Id id, int64_t now_us) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return;
  enter(found->second, State::kOnline, now_us);
  found->second.ack_us = now_us;
}

bool Replicas::ack(Id id, const ReplicaAck& ack, int64_t now_us) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return false;
  Replica& replica = found->second;
  replica.acked = std::max(replica.acked, ack.offset);
  if (ack.synced) replica.synced = std::max(replica.synced, *ack.synced);
  replica.log_works = !ack.log_fails;
  replica.ack_us = now_us;
  replica.sends_acks = true;
  if (replica.state != State::kWaits) replica.has_loaded = true;
  if (replica.state != State::kAwaitsAck) return false;
  enter(replica, State::kOnline, now_us);
  return true;
}

void Replicas::heard(Id id, int64_t now_us) {
  const auto found = replicas_.find(id);
  if (found != replicas_.end() && !found->second.has_loaded) found->second.ack_us = now_us;
}

int64_t Replicas::count_acked(uint64_t offset) const {
  return std::ranges::count_if(replicas_, [offset](const auto& pair) {
    return pair.second.state == State::kOnline && pair.second.acked >= offset;
  });
}

int64_t Replicas::count_synced(uint64_t offset) const {
  return std::ranges::count_if(replicas_, [offset](const auto& pair) {
    return pair.second.state == State::kOnline && pair.second.synced >= offset;
  });
}

int64_t Replicas::count_good(int64_t lag_s_max, int64_t now_us) const {
  return std::ranges::count_if(replicas_, [=](const auto& pair) {
    return pair.second.state == State::kOnline &&
           (now_us - pair.second.ack_us) / core::kSecondUs <= lag_s_max;
  });
}

std::vector<Replicas::Id> Replicas::timed_out(int64_t timeout_s, int64_t now_us) const {
  std::vector<Id> late;
  for (const auto& [id, replica] : replicas_) {
    // Only the states in which a replica must send acknowledgements time out here. In the other
    // states, the child process or the sender of the file detects a lack of progress.
    const bool must_speak = replica.state == State::kAwaitsAck || replica.state == State::kOnline;
    const int64_t last_us = std::max(replica.ack_us, replica.since_us);
    if (must_speak && replica.sends_acks && now_us - last_us > timeout_s * core::kSecondUs) {
      late.push_back(id);
    }
  }
  return late;
}

std::vector<Replicas::Id> Replicas::keep_alive() const {
  std::vector<Id> waiting;
  for (const auto& [id, replica] : replicas_) {
    // While a child process writes to a replica's socket, this process must not write to that
    // socket.
    const bool waits_for_file =
        replica.state == State::kSnapshot && replica.form == SnapshotForm::kFile;
    if (replica.state == State::kWaits || waits_for_file) waiting.push_back(id);
  }
  return waiting;
}

}  // namespace server
