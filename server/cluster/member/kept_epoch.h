// SPDX-License-Identifier: MIT
//
// KeptEpoch: the highest epoch of its shard that a node has on its disk. It neither leads nor
// promises in a higher one, so that a restart does not bring it back to a lower one.
//
// Thread safety: belongs to one thread; times are given by the caller.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/cluster/member/member_actions.h"

namespace server::cluster {

class KeptEpoch {
 public:
  // `shard`, `epoch`: what is on the disk.
  KeptEpoch(std::string shard, uint64_t epoch) : shard_(std::move(shard)), epoch_(epoch) {}

  const std::string& shard() const { return shard_; }
  uint64_t epoch() const { return epoch_; }

  // The node's shard; the epochs of another one count no more.
  void join(std::string_view shard);
  void want(uint64_t epoch);
  void kept(std::string_view shard, uint64_t epoch);
  // Asks for what is wanted and not kept, again when that has failed.
  void step(int64_t now_us, std::vector<MemberAction>& actions);

 private:
  std::string shard_;
  uint64_t epoch_ = 0;
  uint64_t wanted_ = 0;
  uint64_t asked_ = 0;
  int64_t again_us_ = 0;
};

}  // namespace server::cluster
