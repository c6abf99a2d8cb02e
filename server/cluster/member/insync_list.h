// SPDX-License-Identifier: MIT
//
// InsyncList: which members a leader wants in the topology's list `insync`: those that may take
// over, because they lack no more than what was written in the last moments.
//
// A replica has caught up when it acknowledges what the stream held at an earlier look. It joins
// the list when that look is recent, and leaves it when it is long ago. It also leaves when its
// link ends, for it lacks all that is acknowledged from then on.
//
// Thread safety: belongs to one thread; times are given by the caller.
// Source: as the in-sync replicas of Kafka, https://kafka.apache.org/documentation/#replication.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/cluster/member/member_actions.h"

namespace server::cluster {

class InsyncList {
 public:
  InsyncList(int64_t join_lag_us, int64_t leave_lag_us)
      : join_lag_us_(join_lag_us), leave_lag_us_(leave_lag_us) {}

  // A new leader knows of nobody yet: those on the list have time to come.
  void begin(const Shard& shard, int64_t now_us);
  // To be called often.
  void look(const Shard& shard, const ReplicationFacts& facts, int64_t now_us);
  // In the order of the members.
  std::vector<std::string> wanted(const Shard& shard, int64_t now_us) const;

 private:
  struct Progress {
    std::string id;
    bool is_online = false;
    bool has_left = false;  // its link to this leader has ended
    bool has_goal = false;
    uint64_t goal = 0;  // the stream's end at goal_us
    int64_t goal_us = 0;
    int64_t caught_up_us = 0;    // it has all that there was then
    bool has_caught_up = false;  // since this leader began
  };

  Progress& progress_of(const std::string& id, int64_t now_us);

  const int64_t join_lag_us_;
  const int64_t leave_lag_us_;
  std::vector<Progress> members_;
};

}  // namespace server::cluster
