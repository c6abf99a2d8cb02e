// SPDX-License-Identifier: MIT
//
// TestThreads: simulates the I/O threads of a server. By default a drain ends at once, as if it had
// visited every thread. A test may set another callback.
//
// Thread safety: none, except wake_for_messages().
#pragma once

#include <functional>
#include <utility>

#include "server/dispatch/drain.h"
#include "server/session/pubsub/pub_sub.h"

namespace server {

struct TestThreads final : CommandThreads, MessageWaker {
  void visit(Drain::Callback on_all_passed) override { on_visit(std::move(on_all_passed)); }
  void wake_held_back() override {
    ++wakes;
    on_held_back();
  }
  void wake_for_messages(size_t thread_index) override { on_messages(thread_index); }

  std::function<void(Drain::Callback)> on_visit = [](const Drain::Callback& on_all_passed) {
    on_all_passed();
  };
  std::function<void()> on_held_back = [] {};
  std::function<void(size_t)> on_messages = [](size_t) {};
  std::function<void(size_t)> on_monitored = [](size_t) {};
  int wakes = 0;
};

}  // namespace server
