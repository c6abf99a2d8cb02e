// SPDX-License-Identifier: MIT
#include "server/net/periodic.h"

#include <algorithm>
#include <utility>

#include "server/net/connection.h"

namespace server::net {

Periodic::Periodic(IoThreads& threads, const Config& config, const core::Clock& clock,
                   std::function<void()> task)
    : threads_(threads),
      config_(config),
      clock_(clock),
      task_(std::move(task)),
      timer_(threads.at(0).context) {}

void Periodic::start() {
  await();
}

void Periodic::stop() {
  stopped_ = true;
  timer_.cancel();
}

void Periodic::await() {
  const int64_t hz = std::max<int64_t>(1, config_.hz());
  timer_.expires_after(std::chrono::milliseconds(1000 / hz));
  timer_.async_wait([this, hz](const ErrorCode& error) {
    if (error || stopped_) return;
    task_();
    if (++ticks_ % static_cast<uint64_t>(hz) == 0) check_clients();
    await();
  });
}

void Periodic::check_clients() {
  const int64_t timeout_us = config_.timeout_s() * core::kSecondUs;
  const int64_t now_us = clock_.monotonic_us();
  // Interval for which the peak size of a client's output buffer is measured. CLIENT LIST shows the
  // peak as `rbp`. The value is that of Redis.
  constexpr int64_t kPeakIntervalS = 5;
  const bool new_peak = ++client_checks_ % kPeakIntervalS == 0;
  threads_.post_to_each([now_us, timeout_us, new_peak](IoThread& thread) {
    thread.connections.for_each(
        [&](Connection& connection) { connection.on_tick(now_us, timeout_us, new_peak); });
  });
}

}  // namespace server::net
