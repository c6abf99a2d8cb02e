// SPDX-License-Identifier: MIT
#include "server/cluster/election/kept_epoch.h"

namespace server::cluster {
namespace {

constexpr int64_t kAgainUs = 1'000'000;

}  // namespace

void KeptEpoch::join(std::string_view shard) {
  if (shard == shard_) return;
  *this = KeptEpoch(std::string(shard), 0);
}

void KeptEpoch::kept(std::string_view shard, uint64_t epoch) {
  if (shard == shard_) epoch_ = std::max(epoch_, epoch);
}

void KeptEpoch::step(int64_t now_us, std::vector<MemberAction>& actions) {
  if (epoch_ >= wanted_ || (asked_ == wanted_ && now_us < again_us_)) return;
  asked_ = wanted_;
  again_us_ = now_us + kAgainUs;
  actions.emplace_back(KeepEpoch{shard_, wanted_});
}

}  // namespace server::cluster
