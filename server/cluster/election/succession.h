// SPDX-License-Identifier: MIT
//
// Succession: decides whether the clients of a shard wait while its leader hands over to a member.
// If clients did not wait, the leader and its successor would redirect them to each other. The
// successor holds clients from the moment when the leader reports its resignation. The former
// leader holds clients until the successor serves.
//
//   former leader   resigns ── writes ─► etcd has the successor ── clients wait ──► MOVED
//   successor                  named ──────── clients wait ────────► serves ─ reports ─┘
//
// Invariants: clients wait for kHoldUs at most. The wait also ends when the shard's epoch is not
// the one for which the wait began.
// Thread safety: belongs to one thread; times are given by the caller.
#pragma once

#include <algorithm>
#include <cstdint>

namespace server::cluster {

class Succession {
 public:
  static constexpr int64_t kHoldUs = 500'000;
  // The successor answers the report of the resignation within this time. It exceeds kHoldUs,
  // because the former leader begins to hold clients only when etcd has the successor. Without the
  // answer they would wait for all of kHoldUs.
  static constexpr int64_t kAnswerUs = 2'000'000;

  // Called when the leader of `epoch` has reported its resignation to this node, its successor.
  void named(uint64_t epoch, int64_t now_us) { hold(epoch, now_us); }
  // Called when the topology in etcd names another node as the leader. Until then this node was the
  // leader, in `epoch`.
  void handed_over(uint64_t epoch, int64_t now_us) {
    if (served_epoch_ <= epoch) hold(epoch + 1, now_us);
  }
  // Called when the successor of the leader of `epoch` serves clients.
  void successor_serves(uint64_t epoch) {
    served_epoch_ = std::max(served_epoch_, epoch + 1);
    if (epoch_ == epoch + 1) until_us_ = 0;
  }
  // Sets the shard's epoch after each change of the topology; 0 if the node is in no shard.
  void epoch_seen(uint64_t epoch) {
    if (epoch != epoch_) until_us_ = 0;
  }
  bool holds_clients(int64_t now_us) const { return now_us < until_us_; }

 private:
  void hold(uint64_t epoch, int64_t now_us) {
    epoch_ = epoch;
    until_us_ = now_us + kHoldUs;
  }

  uint64_t epoch_ = 0;  // epoch for which clients wait; another epoch of the shard ends the wait
  int64_t until_us_ = 0;
  uint64_t served_epoch_ = 0;
};

}  // namespace server::cluster
