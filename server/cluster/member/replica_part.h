// SPDX-License-Identifier: MIT
//
// ReplicaPart: a Member's part as a replica: promises to its leader that it does not take over, and
// takes over when etcd says that the leader's key is gone.
//
// Invariants: within a promise it asks etcd for no take-over, nor within PermitTimes::wait_us of
// its start, for it has forgotten what it had promised.
// Thread safety: belongs to one thread; times are given by the caller.
// Source: see member.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/result.h"
#include "server/cluster/member/election.h"
#include "server/cluster/member/member_state.h"

namespace server::cluster {

class ReplicaPart {
 public:
  explicit ReplicaPart(MemberState& state) : state_(state), election_(state.options.id) {}

  // REQUIRES for all: this node does not lead.
  void step(const Shard& shard, int64_t now_us);
  // False: another one leads at a higher epoch, or may soon.
  bool promise(const Shard& shard, uint64_t epoch, int64_t now_us);
  bool can_stand(const Shard& shard, int64_t now_us) const;
  // FORCE: does not mind that the leader is alive. Errors: the reply.
  core::Result<> take_over(const Shard& shard, int64_t now_us);

  void offset_answered(uint64_t call, std::string_view peer,
                       std::optional<HistoryPosition> position);
  // The topology has changed.
  void reset() {
    election_.cancel();
    yielding_since_us_ = 0;
  }
  void led() {
    forced_until_us_ = 0;
    has_connected_ = true;
  }
  // etcd has refused.
  void refused(int64_t now_us) { stand_again_us_ = now_us + state_.options.times.ask_us; }

 private:
  bool leader_is_gone(const Shard& shard) const;
  void look_at_leader(const Shard& shard, int64_t now_us);
  // Its copy is from before its start, and its leader has acknowledged more since.
  bool is_behind_for_sure() const { return leader_has_lived_ && !has_connected_; }
  void ask_peers(const Shard& shard, bool is_forced, int64_t now_us);
  bool yields_to_leader(int64_t now_us);
  void stand(const Shard& shard);

  MemberState& state_;
  Election election_;
  int64_t promised_until_us_ = 0;
  // When the leader was not known to be gone.
  int64_t leader_seen_us_ = 0;
  int64_t stand_again_us_ = 0;
  int64_t forced_until_us_ = 0;
  // The restarted leader has answered the present election, and this node has nothing more.
  bool leader_has_all_ = false;
  int64_t yielding_since_us_ = 0;  // 0: it does not yield
  // Both in this life of the process.
  bool has_connected_ = false;
  bool leader_has_lived_ = false;
};

}  // namespace server::cluster
