// SPDX-License-Identifier: MIT
//
// Heartbeat: whether the threads that serve clients still run their events, for /healthz.
//
// Each tick asks all of them to call back between two commands, unless they still owe the answer to
// the last question. A command that takes long holds its thread up: only kSilentMaxUs later that is
// called ill.
//
// Invariants: at most one question is on its way.
// Thread safety: all members may be called from any thread. The answer may come after this object
// has gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace server::admin {

class Heartbeat {
 public:
  // Calls back on one of the threads, once each has been between two commands.
  using Ask = std::function<void(std::function<void()>)>;
  static constexpr int64_t kSilentMaxUs = 15'000'000;

  explicit Heartbeat(Ask ask) : ask_(std::move(ask)) {}

  // About once a second.
  void tick(int64_t now_us) {
    if (state_->asked_us.load() != kNotAsked) return;
    state_->asked_us = now_us;
    ask_([state = state_] { state->asked_us = kNotAsked; });
  }
  // How long the threads have owed an answer.
  int64_t silent_us(int64_t now_us) const {
    const int64_t asked_us = state_->asked_us.load();
    return asked_us == kNotAsked ? 0 : now_us - asked_us;
  }

 private:
  static constexpr int64_t kNotAsked = -1;
  struct State {
    std::atomic<int64_t> asked_us{kNotAsked};
  };
  const Ask ask_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace server::admin
