// SPDX-License-Identifier: MIT
#include "server/cluster_node/departure.h"

#include <string>
#include <utility>

#include "server/base/log/log.h"
#include "server/cluster/election/leader_part.h"
#include "server/cluster/election/member.h"

namespace server::cluster {
namespace {

constexpr int64_t kHandoverUs = 2'000'000;
// For this time after a handover, the node redirects clients that write. Only then does the process
// end, because a redirection costs a client less than a lost connection.
constexpr int64_t kLingerUs = 500'000;

}  // namespace

void Departure::hand_over(int64_t now_us, std::function<void()> done) {
  const bool may_hand_over = !member_.successor().empty() && member_.etcd_answers(now_us);
  if (handover_ || !may_hand_over) return done();
  handover_ = Wait{std::move(done), now_us + kHandoverUs};
  is_handed_over_ = false;
  try_handover(now_us);
}

// The leader refuses a handover while it changes the topology, and cancels one after a second.
void Departure::try_handover(int64_t now_us) {
  if (!member_.leads()) return;
  const std::string successor = member_.successor();
  if (successor.empty() || !member_.hand_over(now_us, successor)) return;
  log_notice("Cluster: the shard is handed over to {}", successor);
}

void Departure::close_list(int64_t now_us, uint64_t offset, std::function<void()> done) {
  member_.close_list(now_us, offset);
  closing_ = Wait{std::move(done), now_us + kCloseListUs};
}

void Departure::step(int64_t now_us) {
  if (handover_) {
    try_handover(now_us);
    // Clients wait until the successor serves; then they are redirected.
    const bool redirects = member_.service(now_us) == MemberService::kNone;
    if (redirects && !std::exchange(is_handed_over_, true)) {
      handover_->until_us = now_us + kLingerUs;
    }
    if (now_us >= handover_->until_us) std::exchange(handover_, std::nullopt)->done();
  }
  if (!closing_) return;
  const bool may_leave = member_.may_leave();
  if (!may_leave && now_us < closing_->until_us) return;
  if (!may_leave) {
    log_warning(
        "Cluster: etcd has not confirmed the shorter list of members in sync; a member that lacks "
        "data takes over unless this node is back before its lease ends");
  }
  std::exchange(closing_, std::nullopt)->done();
}

}  // namespace server::cluster
