// SPDX-License-Identifier: MIT
#include "server/cluster/cluster_state.h"

#include <utility>

#include "server/cluster/view.h"

namespace server::cluster {

const core::keyspace::SlotSet ClusterState::kNoSlots{};

void ClusterState::publish(std::shared_ptr<const View> view) {
  const std::scoped_lock lock(mutex_);
  view_ = std::move(view);
  version_.fetch_add(1, std::memory_order_release);
}

void ClusterState::set_service(Service service) {
  const std::scoped_lock lock(mutex_);
  service_.store(service, std::memory_order_relaxed);
  if (is_on()) version_.fetch_add(1, std::memory_order_release);
}

void ClusterState::refresh(Seen& seen) const {
  const std::scoped_lock lock(mutex_);
  seen.version = version_.load(std::memory_order_acquire);
  seen.service = service();
  seen.view = view_;
  seen.served_slots = seen.service == Service::kUp ? &view_->led_slots() : &kNoSlots;
}

}  // namespace server::cluster
