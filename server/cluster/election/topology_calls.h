// SPDX-License-Identifier: MIT
//
// TopologyCalls: a Member's pending reads of the topology, and its one pending change. A change
// whose outcome is unknown is requested again if a read shows that etcd still has the revision that
// the change compares with. The change is executed at most once, because all attempts compare with
// the same revision.
//
// Invariants: at most one change is pending. A change is forgotten as soon as its outcome is known.
// Thread safety: belongs to one thread; times are given by the caller.
// Source: etcd may execute a call that it has answered with a timeout,
// https://etcd.io/docs/v3.4/learning/api_guarantees/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/cluster/election/member_actions.h"

namespace server::cluster {

class TopologyCalls {
 public:
  struct Read {
    uint64_t call = 0;
    int64_t sent_us = 0;
    // Epoch in which this node led when it sent the read; 0: it did not lead.
    uint64_t led_epoch = 0;
    uint64_t known_revision = 0;
  };

  // `actions` receives the requested actions, and must outlive this object.
  TopologyCalls(std::vector<MemberAction>& actions, int64_t ask_us)
      : actions_(actions), ask_us_(ask_us) {}

  uint64_t next_call() { return ++last_call_; }
  void read(int64_t now_us, uint64_t led_epoch, uint64_t known_revision);
  // Removes and returns the pending read; nullopt for an unknown call.
  std::optional<Read> take_read(uint64_t call);

  // Requests a change of the topology. REQUIRES: no other change is pending.
  void change(ChangeTopology change);
  bool is_changing() const { return change_.has_value(); }
  // Returns the pending change; null if there is none.
  const ChangeTopology* changing() const { return change_ ? &change_->request : nullptr; }
  // Returns the pending change if `call` is the number of the last attempt to write this change.
  std::optional<ChangeTopology> answered(uint64_t call) const;
  void refused() { change_.reset(); }
  void unknown(int64_t now_us);
  // Called when a read has shown that etcd has `revision`.
  void unchanged(uint64_t revision);
  // Called when etcd has no topology. A pending change of an existing topology is dropped, because
  // etcd will refuse it.
  void absent();
  // Called when etcd has the topology of `revision`. A pending change of an older revision is
  // dropped, because etcd will refuse it.
  void seen(uint64_t revision);

  // Requests reads of the topology, at intervals of ask_us, while the outcome of the change is
  // unknown.
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
  std::vector<Read> reads_;  // pending reads, the oldest first
  std::optional<Change> change_;
};

}  // namespace server::cluster
