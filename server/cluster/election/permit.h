// SPDX-License-Identifier: MIT
//
// Permit: the time in which a leader may acknowledge. A reply may leave while from_us() <= now <
// until_us(). The leader extends the permit by sending a question. The answer must prove that no
// member had taken over when the question was sent. The proof is etcd's answer that the topology
// still names this leader, or the promise of every member that could take over. Before its first
// reply, a new leader waits longer than any permit of the old leader lasts.
//
//   old leader   question sent ──────── W ────────► last reply
//   etcd                    answered │ new leader written
//   new leader                               │ learnt ────── 1.1 W ──────► first reply
//
// Invariants: until_us() never decreases within one epoch; a permit that was given up is not
// extended. Two leaders' permits never overlap while their clocks' rates differ by less than 10 %.
// Thread safety: belongs to one thread; times are monotonic, of this machine, given by the caller.
// Source: Gray and Cheriton, "Leases: an efficient fault-tolerant mechanism for distributed file
// cache consistency", 1989.
#pragma once

#include <algorithm>
#include <cstdint>

namespace server::cluster {

// Times that are derived from cluster-node-timeout.
struct PermitTimes {
  int64_t length_us = 0;   // time for which a confirmation of the permit is valid; W in the diagram
  int64_t wait_us = 0;     // time that a new or restarted leader waits before it serves
  int64_t promise_us = 0;  // time for which a promise to the leader prevents a takeover
  int64_t ask_us = 0;      // interval at which a leader asks for confirmation of its permit

  static PermitTimes of_timeout(int64_t timeout_us);
};

class Permit {
 public:
  explicit Permit(const PermitTimes& times) : times_(times) {}

  // Begins a permit for `epoch`. Replies may be sent from `from_us` on, but not before the permit
  // is confirmed.
  void begin(uint64_t epoch, int64_t from_us);
  // Extends the permit. Called when etcd, or every possible successor, has answered a request that
  // this leader sent at `sent_us` in the permit's epoch. If no other member can take over,
  // `sent_us` is the present time.
  void confirm(int64_t sent_us) { until_us_ = std::max(until_us_, sent_us + times_.length_us); }
  // Called when the former leader has given up its permit. So this leader need not wait before it
  // serves.
  void skip_wait(int64_t now_us) { from_us_ = std::min(from_us_, now_us); }
  // Ends the permit at once. Only begin(), for a new epoch, starts another permit.
  void give_up() { epoch_ = 0; }

  // Returns the epoch of the permit; 0 if there is none.
  uint64_t epoch() const { return epoch_; }
  bool is_held() const { return epoch_ != 0; }
  int64_t from_us() const { return from_us_; }
  // Returns the end of the permit; 0 if there is no permit, or the permit is not confirmed yet.
  int64_t until_us() const { return epoch_ == 0 ? 0 : until_us_; }
  bool allows(int64_t now_us) const { return from_us_ <= now_us && now_us < until_us(); }

 private:
  const PermitTimes times_;
  uint64_t epoch_ = 0;
  int64_t from_us_ = 0;
  int64_t until_us_ = 0;
};

}  // namespace server::cluster
