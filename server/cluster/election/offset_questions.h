// SPDX-License-Identifier: MIT
//
// Implements a leader's questions to the members in sync: how much of the history they have, and
// whether they can take over.
//
// Thread safety: SuccessorSearch and ReturnCheck belong to one thread; the caller gives the times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/cluster/election/member_state.h"

namespace server::cluster {

// SuccessorSearch: a leader whose append log fails refuses writes. So it asks the online replicas
// in sync whether they can take over, and hands the shard over to the first that can.
class SuccessorSearch {
 public:
  // Interval between two requests to the replicas. It is longer than a handover takes.
  static constexpr int64_t kAskEveryUs = 2'000'000;

  explicit SuccessorSearch(MemberState& state) : state_(state) {}

  // REQUIRES: this node leads the shard.
  void step(const Shard& shard, int64_t now_us) {
    if (state_.facts.log_works || now_us < ask_again_us_) return;
    ask_again_us_ = now_us + kAskEveryUs;
    call_ = state_.calls.next_call();
    for (const auto& replica : state_.facts.replicas) {
      if (!replica.is_online || !shard.is_insync(replica.id)) continue;
      state_.actions.emplace_back(AskOffset{call_, replica.id, shard.name});
    }
  }
  // Returns whether this leader should hand the shard over to the peer that has answered question
  // `call`. This requires that `call` is the latest question, that the answer has the peer's
  // position, and that this leader's append log still fails.
  bool accepts(uint64_t call, const std::optional<HistoryPosition>& position) const {
    return !state_.facts.log_works && call == call_ && position.has_value();
  }

 private:
  MemberState& state_;
  uint64_t call_ = 0;
  int64_t ask_again_us_ = 0;
};

// ReturnCheck: decides whether a restarted leader may lead again. If the leader may have lost data,
// it leaves the shard to the members that may have these data. After a power cut the leader asks
// all members in sync whether one of them has more data. A member that cannot take over yet sends
// no position, so the leader repeats the question.
class ReturnCheck {
 public:
  explicit ReturnCheck(MemberState& state) : state_(state) {}

  // Called when the topology names this node as the leader.
  void begin(int64_t now_us);
  // Called when this node serves as the leader. After that, this process cannot lack the newest
  // data.
  void led() { has_led_ = true; }
  // Checks whether all other members in sync are alive. If not, records `now_us` as the last time
  // at which a member was missing.
  void look_at_others(const Shard& shard, int64_t now_us);
  // If this leader may lack the newest data, asks the members in sync for their offsets. A member
  // is not asked again once its answer has shown that it has no more data than this leader.
  void step(const Shard& shard, int64_t now_us);
  void answered(uint64_t call, std::string_view peer,
                const std::optional<HistoryPosition>& position);

  // has_lost_data() and has_log_or_is_alone() REQUIRE that this node leads the shard, and that an
  // earlier process of this node may have led it.
  bool has_lost_data(const Shard& shard, int64_t now_us) const;
  // Returns whether this node may answer members that ask for its position in the history.
  bool has_log_or_is_alone(const Shard& shard, int64_t now_us) const;

 private:
  // Returns the time within which a running member takes over if it has more data than this leader:
  // four node timeouts.
  int64_t patience_us() const { return 40 * state_.options.times.ask_us; }
  bool is_new(int64_t now_us) const { return now_us < state_.options.started_us + patience_us(); }
  bool has_old_snapshot(const Shard& shard, int64_t now_us) const;
  bool may_lack_newest(const Shard& shard, int64_t now_us) const;
  bool is_settled(const std::string& id) const {
    return id == state_.options.id || have_no_more_.contains(id);
  }

  MemberState& state_;
  bool has_led_ = false;           // true once this process has served as the leader
  int64_t others_missing_us_ = 0;  // last time at which some member in sync was not alive
  IdSet have_no_more_;
  uint64_t first_call_ = 0;
  int64_t ask_again_us_ = 0;
};

}  // namespace server::cluster
