// SPDX-License-Identifier: MIT
//
// Election: decides which member in sync campaigns first when etcd no longer has the leader's key
// alive/<id>. A candidate asks the other members how much of the history they have. The member with
// the most history campaigns at once. Each other member campaigns later, unless another member has
// taken over by then.
//
//   kIdle ──begin()──► kAsking ──all have answered, or 300 ms──► kWaits ──wait_us()──► due
//     ▲                   └──────────────── cancel() ────────────┘
//
// A member with more history may learn late that the leader's key is gone. When the candidate asks
// this member for its history, the member reads the live nodes from etcd. The candidate waits at
// least two seconds, so that this member can campaign before the candidate does.
// Invariants: safety does not depend on the order of the campaigns. Etcd alone decides which member
// leads.
// Thread safety: belongs to one thread; times are given by the caller.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/cluster/election/member_actions.h"

namespace server::cluster {

class Election {
 public:
  explicit Election(std::string own_id) : own_id_(std::move(own_id)) {}

  // Starts an election. `peers` are the ids of the members to ask; `call` is the number of this
  // attempt.
  void begin(uint64_t call, std::vector<std::string> peers, int64_t now_us);
  void cancel() { state_ = State::kIdle; }
  bool is_idle() const { return state_ == State::kIdle; }
  uint64_t call() const { return call_; }

  // Records that `peer` can campaign, and that its data extend to `position`.
  void answered(uint64_t call, std::string_view peer, HistoryPosition position);
  void failed(uint64_t call, std::string_view peer);
  // Returns whether it is this node's turn to campaign. If so, the election becomes idle.
  bool is_due(HistoryPosition own, int64_t now_us);

 private:
  enum class State : uint8_t { kIdle, kAsking, kWaits };
  struct Answer {
    std::string peer;
    HistoryPosition position;
  };

  // Returns how long this node waits before it campaigns. Meanwhile the peers that have answered
  // and come first can campaign. These are peers with more history, or with equal history and a
  // smaller id.
  int64_t wait_us(HistoryPosition own) const;

  const std::string own_id_;
  State state_ = State::kIdle;
  uint64_t call_ = 0;
  std::vector<std::string> unanswered_;
  std::vector<Answer> answers_;
  int64_t due_us_ = 0;
};

}  // namespace server::cluster
