// SPDX-License-Identifier: MIT
//
// TopologyCalls: the questions and the one change of the topology that a Member has under way. A
// change whose outcome is unknown is not given up: etcd is read, and as long as it still has the
// revision that the change compares with, the change is asked for again. It is carried out once at
// most, for all its tries compare with the same revision.
//
// Invariants: one change at a time; an outcome that is known is reported once.
// Thread safety: belongs to one thread; times are given by the caller.
// Source: etcd may carry out a call that it has answered with a time-out,
// https://etcd.io/docs/v3.4/learning/api_guarantees/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/cluster/member/member_actions.h"

namespace server::cluster {

class TopologyCalls {
 public:
  struct Read {
    uint64_t call = 0;
    int64_t sent_us = 0;
    uint64_t led_epoch = 0;  // 0: this node led none when it asked
    uint64_t known_revision = 0;
  };

  // `actions`: takes what is to be done; outlives this.
  TopologyCalls(std::vector<MemberAction>& actions, int64_t ask_us)
      : actions_(actions), ask_us_(ask_us) {}

  uint64_t next_call() { return ++last_call_; }
  void read(int64_t now_us, uint64_t led_epoch, uint64_t known_revision);
  // nullopt: nobody asked.
  std::optional<Read> take_read(uint64_t call);

  // REQUIRES: !is_changing().
  void change(ChangeTopology change);
  bool is_changing() const { return change_.has_value(); }
  // Null when no change is under way.
  const ChangeTopology* changing() const { return change_ ? &change_->request : nullptr; }
  // The change under way if the answer is for it.
  std::optional<ChangeTopology> answered(uint64_t call) const;
  void refused() { change_.reset(); }
  void unknown(int64_t now_us);
  // etcd had `revision`.
  void unchanged(uint64_t revision);
  // etcd had no topology: what compares with a revision is refused from now on.
  void absent();
  // etcd has `revision`: what compares with an older one is refused from now on.
  void seen(uint64_t revision);

  // Reads what came of a change.
  void step(int64_t now_us, uint64_t led_epoch, uint64_t known_revision);

 private:
  struct Change {
    ChangeTopology request;
    bool is_unknown = false;
    int64_t read_again_us = 0;
  };

  std::vector<MemberAction>& actions_;
  const int64_t ask_us_;
  uint64_t last_call_ = 0;
  std::vector<Read> reads_;  // the oldest first
  std::optional<Change> change_;
};

}  // namespace server::cluster
