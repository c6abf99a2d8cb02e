// SPDX-License-Identifier: MIT
//
// SyncRecord: when the running sync of the append log began, and how many syncs took too long.
//
// Invariants: at most one sync runs at a time.
// Thread safety: the thread that syncs calls begin() and end(). Any thread may call the other
// functions.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace server {

class SyncRecord {
 public:
  // Duration after which a sync counts as delayed, as in Redis.
  static constexpr int64_t kOverdueUs = 2 * core::kSecondUs;

  void begin(int64_t now_us) { began_us_ = now_us; }
  // Returns the duration of the sync.
  int64_t end(int64_t now_us) {
    const int64_t took_us = now_us - began_us_.exchange(kNone);
    if (took_us > kOverdueUs) ++delayed_;
    return took_us;
  }
  bool is_running() const { return began_us_ != kNone; }
  // Returns whether a sync is running that already takes longer than kOverdueUs.
  bool is_overdue(int64_t now_us) const {
    const int64_t began_us = began_us_;
    return began_us != kNone && now_us - began_us > kOverdueUs;
  }
  // Number of syncs that took longer than kOverdueUs.
  uint64_t delayed() const { return delayed_; }

 private:
  static constexpr int64_t kNone = -1;

  std::atomic<int64_t> began_us_{kNone};
  std::atomic<uint64_t> delayed_{0};
};

}  // namespace server
