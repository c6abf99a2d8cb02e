// SPDX-License-Identifier: MIT
//
// KeptEpoch: the highest epoch of its shard that a node has on its disk. The node writes an epoch
// to the disk before it serves as the leader of that epoch. It also does so before it promises
// another leader not to take over during that epoch. So after a restart the node knows the highest
// epoch that it has used.
//
// Thread safety: belongs to one thread; times are given by the caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/cluster/election/member_actions.h"

namespace server::cluster {

class KeptEpoch {
 public:
  // `shard` and `epoch` are the values read from the disk.
  KeptEpoch(std::string shard, uint64_t epoch) : shard_(std::move(shard)), epoch_(epoch) {}

  const std::string& shard() const { return shard_; }
  uint64_t epoch() const { return epoch_; }

  // Sets the node's shard. A kept epoch of another shard is dropped.
  void join(std::string_view shard);
  void want(uint64_t epoch) { wanted_ = std::max(wanted_, epoch); }
  void kept(std::string_view shard, uint64_t epoch);
  // Requests a write of the epoch to the disk if want() was called with a higher epoch than the
  // kept one. Repeats the request until the write succeeds.
  void step(int64_t now_us, std::vector<MemberAction>& actions);

 private:
  std::string shard_;
  uint64_t epoch_ = 0;
  uint64_t wanted_ = 0;
  uint64_t asked_ = 0;
  int64_t again_us_ = 0;
};

}  // namespace server::cluster
