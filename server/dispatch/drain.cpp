// SPDX-License-Identifier: MIT
#include "server/dispatch/drain.h"

#include <utility>

namespace server {

void Drain::begin(Callback on_ended) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(on_ended));
    if (std::exchange(is_running_, true)) return;
  }
  visit();
}

void Drain::visit() {
  std::vector<Callback> callbacks;
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.empty()) {
      is_running_ = false;
      return;
    }
    callbacks.swap(waiting_);
  }
  threads_.visit([this, callbacks = std::move(callbacks)] {
    for (const Callback& callback : callbacks) callback();
    visit();
  });
}

}  // namespace server
