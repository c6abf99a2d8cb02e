// SPDX-License-Identifier: MIT
//
// SuccessorSearch: finds a successor for a leader that refuses writes because its append log fails.
// It asks the members in sync whether they can take over. The leader hands over to the first one
// that can.
//
// Thread safety: belongs to one thread; times are given by the caller.
#pragma once

#include <cstdint>

#include "server/cluster/member/member_state.h"

namespace server::cluster {

class SuccessorSearch {
 public:
  // Interval between two searches, which is longer than a handover takes.
  static constexpr int64_t kAskEveryUs = 2'000'000;

  explicit SuccessorSearch(MemberState& state) : state_(state) {}

  // Asks the members in sync if the append log fails. REQUIRES: this node leads the shard.
  void step(const Shard& shard, int64_t now_us) {
    if (state_.facts.log_works || now_us < ask_again_us_) return;
    ask_again_us_ = now_us + kAskEveryUs;
    call_ = state_.calls.next_call();
    for (const auto& replica : state_.facts.replicas) {
      if (!replica.is_online || !shard.is_insync(replica.id)) continue;
      state_.actions.emplace_back(AskOffset{call_, replica.id, shard.name});
    }
  }
  // Returns whether the peer that has answered this call can take over.
  bool accepts(uint64_t call, const std::optional<HistoryPosition>& position) const {
    return !state_.facts.log_works && call == call_ && position.has_value();
  }

 private:
  MemberState& state_;
  uint64_t call_ = 0;
  int64_t ask_again_us_ = 0;
};

}  // namespace server::cluster
