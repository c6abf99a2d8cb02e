// SPDX-License-Identifier: MIT
#include "server/cluster/cluster_state.h"

#include <utility>

#include "server/cluster/view.h"

namespace server::cluster {

void ClusterState::publish(std::shared_ptr<const View> view) {
  const std::scoped_lock lock(mutex_);
  view_ = std::move(view);
  version_.fetch_add(1, std::memory_order_release);
}

void ClusterState::refresh(Seen& seen) const {
  const std::scoped_lock lock(mutex_);
  seen.version = version_.load(std::memory_order_relaxed);
  seen.view = view_;
  seen.led_slots = &view_->led_slots();
}

}  // namespace server::cluster
