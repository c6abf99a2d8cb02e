// SPDX-License-Identifier: MIT
//
// InsyncList: the members that a leader wants in the topology's list `insync`. These members may
// take over, because they lack at most the writes of the last few seconds.
//
// For each replica, the leader repeatedly records the time and the end offset of the stream. The
// replica joins the list when it has acknowledged a recently recorded offset. It leaves when the
// last recorded offset that it has acknowledged is old. It also leaves when its link ends or its
// append log fails, because it lacks all writes acknowledged from then on.
//
// Thread safety: belongs to one thread; times are given by the caller.
// Source: the in-sync replicas of Kafka, https://kafka.apache.org/documentation/#replication.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/cluster/election/member_actions.h"

namespace server::cluster {

class InsyncList {
 public:
  InsyncList(int64_t join_lag_us, int64_t leave_lag_us)
      : join_lag_us_(join_lag_us), leave_lag_us_(leave_lag_us) {}

  // Starts with the members on the stored list. A new leader has no links yet, so these members get
  // time to connect.
  void begin(const Shard& shard, int64_t now_us);
  // Updates each member's progress from the state of its link and its acknowledged offset. The
  // interval between calls adds to the measured lag. So the interval must be several times shorter
  // than the lags at which replicas join and leave the list.
  void look(const Shard& shard, const ReplicationFacts& facts, int64_t now_us);
  // Returns the members that should be in the list, in the order of the shard's members.
  std::vector<std::string> wanted(const Shard& shard, int64_t now_us) const;

 private:
  struct Progress {
    std::string id;
    bool is_online = false;
    bool has_left = false;  // true if the member's link has ended, or its append log fails
    bool has_goal = false;
    uint64_t goal = 0;  // end of the stream at the time goal_us
    int64_t goal_us = 0;
    int64_t caught_up_us = 0;    // the member has all of the stream that existed at this time
    bool has_caught_up = false;  // true once the member has caught up with this leader
  };

  Progress& progress_of(const std::string& id, int64_t now_us);

  const int64_t join_lag_us_;
  const int64_t leave_lag_us_;
  std::vector<Progress> members_;
};

}  // namespace server::cluster
