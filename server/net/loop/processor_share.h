// SPDX-License-Identifier: MIT
//
// ProcessorShare: determines whether a thread has recently used more than half of a processor.
//
// Not thread-safe: each measured thread has its own ProcessorShare.
#pragma once

#include <chrono>

namespace server::net {

class ProcessorShare {
 public:
  // Returns whether the thread used a processor for more than half of the last measured interval.
  // `now` is a time and `used` is the thread's processor time; each counts from an arbitrary fixed
  // point. An interval is at least 100 ms long.
  bool is_busy(std::chrono::nanoseconds now, std::chrono::nanoseconds used) {
    constexpr std::chrono::milliseconds kInterval{100};
    if (now - then_ < kInterval) return was_busy_;
    was_busy_ = 2 * (used - used_then_) > now - then_;
    then_ = now;
    used_then_ = used;
    return was_busy_;
  }

 private:
  std::chrono::nanoseconds then_{0};
  std::chrono::nanoseconds used_then_{0};
  bool was_busy_ = false;
};

}  // namespace server::net
