// SPDX-License-Identifier: MIT
//
// OutputLimit: checks whether one client's unsent replies have reached client-output-buffer-limit.
//
// Invariants: the period of the soft limit begins at the first check that finds the soft limit
// reached. It ends at the next check that finds fewer unsent bytes.
// Thread safety: not thread-safe. An object belongs to one connection.
// Source: Redis 7.0.15, conf/bloomery.conf under client-output-buffer-limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "server/base/config/option.h"

namespace server {

class OutputLimit {
 public:
  // Returns whether the hard limit is reached, or the soft limit has been reached for too long.
  // `now_us` is monotonic.
  bool is_broken(size_t unsent_bytes, const BufferLimit& limit, int64_t now_us) {
    const auto reached = [unsent_bytes](int64_t bytes) {
      return bytes > 0 && unsent_bytes >= static_cast<uint64_t>(bytes);
    };
    if (reached(limit.hard_bytes)) return true;
    if (!reached(limit.soft_bytes)) {
      soft_since_us_.reset();
      return false;
    }
    if (!soft_since_us_) soft_since_us_ = now_us;
    const double elapsed_s = static_cast<double>(now_us - *soft_since_us_) / 1e6;
    return elapsed_s > static_cast<double>(limit.soft_seconds);
  }

 private:
  std::optional<int64_t> soft_since_us_;
};

}  // namespace server
