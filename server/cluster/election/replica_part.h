// SPDX-License-Identifier: MIT
//
// ReplicaPart: implements a Member's role as replica. The replica promises its leader not to take
// over. When etcd no longer has the leader's key, the replica campaigns to take over.
//
// Invariants: a replica requests no takeover from etcd while its promise holds. It also requests
// none within PermitTimes::wait_us after its start, because it does not remember earlier promises.
// Thread safety: belongs to one thread; times are given by the caller.
// Source: see member.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/result.h"
#include "server/cluster/election/election.h"
#include "server/cluster/election/member_state.h"

namespace server::cluster {

class ReplicaPart {
 public:
  explicit ReplicaPart(MemberState& state) : state_(state), election_(state.options.id) {}

  // All functions except reset(), led() and refused() require that this node does not lead.
  void step(const Shard& shard, int64_t now_us);
  // Promises the leader of `epoch` not to take over. Returns false if this node knows a higher
  // epoch, is itself requesting a takeover, or has not yet written `epoch` to its disk. Also
  // returns false if `epoch` is implausibly high (kEpochsAhead).
  bool promise(const Shard& shard, uint64_t epoch, int64_t now_us);
  bool can_stand(const Shard& shard, int64_t now_us) const;
  // Executes CLUSTER FAILOVER FORCE: takes over even if the leader is alive. Errors: the reply to
  // the client.
  core::Result<> take_over(const Shard& shard, int64_t now_us);

  // Called when a peer has asked for the position of this node. The peer may campaign, because it
  // has learned before this node that the leader is gone.
  void was_asked(const Shard& shard) {
    if (!leader_is_gone(shard)) state_.actions.emplace_back(ReadLiveNodes{});
  }
  void offset_answered(uint64_t call, std::string_view peer,
                       std::optional<HistoryPosition> position);
  // Called when the topology has changed.
  void reset() {
    election_.cancel();
    yielding_since_us_ = 0;
  }
  void led() {
    forced_until_us_ = 0;
    has_connected_ = true;
  }
  // Called when etcd has refused the takeover. The next attempt waits for PermitTimes::ask_us.
  void refused(int64_t now_us) { stand_again_us_ = now_us + state_.options.times.ask_us; }

 private:
  bool leader_is_gone(const Shard& shard) const;
  void look_at_leader(const Shard& shard, int64_t now_us);
  // Returns whether this node must be assumed to lack acknowledged writes. This is so if the leader
  // was alive after this process had started, but was never connected to it.
  bool is_behind_for_sure() const { return leader_has_lived_ && !has_connected_; }
  void ask_peers(const Shard& shard, bool is_forced, int64_t now_us);
  bool yields_to_leader(int64_t now_us);
  void stand(const Shard& shard);

  MemberState& state_;
  Election election_;
  int64_t promised_until_us_ = 0;
  // The latest time for which this node knows that etcd had the leader's key alive/<id>.
  int64_t leader_seen_us_ = 0;
  int64_t stand_again_us_ = 0;
  int64_t forced_until_us_ = 0;
  // True if the restarted leader has answered this node's latest question about its position. The
  // answer must show that the leader has all data of this node.
  bool leader_has_all_ = false;
  // Time at which this node began to delay its takeover, because the leader may return
  // (yields_to_leader()); 0 if this node does not delay a takeover.
  int64_t yielding_since_us_ = 0;
  // True if this process has ever been connected to the leader of its shard.
  bool has_connected_ = false;
  // True once the leader is known to have been alive after the start of this process.
  bool leader_has_lived_ = false;
};

}  // namespace server::cluster
