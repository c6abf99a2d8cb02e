// SPDX-License-Identifier: MIT
//
// Heartbeat: detects whether the threads that serve clients still process events, for /healthz.
//
// Each tick requests that all threads call back between two commands, unless the previous request
// is still pending. A long command blocks its thread, so the server counts as unhealthy only after
// kSilentMaxUs.
//
// Invariants: at most one request is pending.
// Thread safety: one thread at a time may call tick(). Any thread may call silent_us(). The
// callback may run after this object is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace server::admin {

class Heartbeat {
 public:
  // Calls the given function on one of the threads that serve clients, after each of these threads
  // has finished the command that it was executing.
  using Ask = std::function<void(std::function<void()>)>;
  static constexpr int64_t kSilentMaxUs = 15'000'000;

  explicit Heartbeat(Ask ask) : ask_(std::move(ask)) {}

  // Sends the next request to the threads. Must be called about once a second.
  void tick(int64_t now_us) {
    if (*asked_us_ != kNotAsked) return;
    *asked_us_ = now_us;
    ask_([asked_us = asked_us_] { *asked_us = kNotAsked; });
  }
  // Returns how long the request to the threads has been pending; 0 if none is pending.
  int64_t silent_us(int64_t now_us) const {
    const int64_t asked_us = *asked_us_;
    return asked_us == kNotAsked ? 0 : now_us - asked_us;
  }

 private:
  static constexpr int64_t kNotAsked = -1;
  const Ask ask_;
  // Time at which the pending request was sent; kNotAsked if none is pending.
  const std::shared_ptr<std::atomic<int64_t>> asked_us_ =
      std::make_shared<std::atomic<int64_t>>(kNotAsked);
};

}  // namespace server::admin
