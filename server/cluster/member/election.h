// SPDX-License-Identifier: MIT
//
// Election: which member in sync stands first when the leader is gone. A candidate asks the others
// how much of the history they have; the one with the most stands at once, the next ones later,
// each if those before it have not.
//
//   kIdle ──begin()──► kAsking ──all have answered, or 300 ms──► kWaits ──rank × 300 ms──► stands
//     ▲                   └───────────────── cancel() ────────────┘
//
// Invariants: safety does not rest on it: who leads is decided by etcd alone.
// Thread safety: belongs to one thread; times are given by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/cluster/member/member_actions.h"

namespace server::cluster {

class Election {
 public:
  explicit Election(std::string own_id) : own_id_(std::move(own_id)) {}

  // `peers` are asked. `call`: which attempt this is.
  void begin(uint64_t call, std::vector<std::string> peers, int64_t now_us);
  void cancel() { state_ = State::kIdle; }
  bool is_idle() const { return state_ == State::kIdle; }
  uint64_t call() const { return call_; }

  // A peer that cannot stand answers nothing.
  void answered(uint64_t call, std::string_view peer, HistoryPosition position);
  void failed(uint64_t call, std::string_view peer);
  // True when it is this node's turn; from then on it is idle.
  bool is_due(HistoryPosition own, int64_t now_us);

 private:
  enum class State : uint8_t { kIdle, kAsking, kWaits };
  struct Answer {
    std::string peer;
    HistoryPosition position;
  };

  // How many of those that answered stand before this node.
  size_t rank(HistoryPosition own) const;

  const std::string own_id_;
  State state_ = State::kIdle;
  uint64_t call_ = 0;
  std::vector<std::string> unanswered_;
  std::vector<Answer> answers_;
  int64_t due_us_ = 0;
};

}  // namespace server::cluster
