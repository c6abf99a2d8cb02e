// SPDX-License-Identifier: MIT
//
// LogRate: limits a log message to one line per interval, and counts the dropped lines. Failing
// clients therefore cannot fill the disk with log lines.
//
//   if (const auto left_out = rate.pass(now_us)) log_notice("…; {} before", *left_out);
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace server {

class LogRate {
 public:
  explicit LogRate(int64_t interval_us) : interval_us_(interval_us) {}

  // Returns how many lines were dropped since the last line that passed. Returns nullopt if this
  // line must be dropped.
  std::optional<uint64_t> pass(int64_t now_us) {
    const std::scoped_lock lock(mutex_);
    if (last_us_ && now_us - *last_us_ < interval_us_) {
      ++left_out_;
      return std::nullopt;
    }
    last_us_ = now_us;
    return std::exchange(left_out_, 0);
  }

 private:
  const int64_t interval_us_;
  std::mutex mutex_;  // this mutex guards the members below
  std::optional<int64_t> last_us_;
  uint64_t left_out_ = 0;
};

}  // namespace server
