// SPDX-License-Identifier: MIT
//
// ExpiryStatistics: what expiry has done and seen, for INFO.
//
// Invariants: figures only; nothing is decided by them.
// Thread safety: all members may be called from any thread; observe() by one thread at a time.
// Source: the figures of Redis 7.0 and how it smooths them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace core::keyspace {

// How long expiring keys had to live when they were seen. A double, for two that live as long as
// can be already exceed what an integer holds.
struct TtlSample {
  double sum_ms = 0;
  int64_t count = 0;
};

class ExpiryStatistics {
 public:
  explicit ExpiryStatistics(size_t database_count) : average_ttl_ms_(database_count) {}

  std::atomic<uint64_t> expired{0};            // keys deleted because their time had come
  std::atomic<uint64_t> ticks_cut_by_time{0};  // ticks of active expiry that ran out of time
  // Share of expiring keys that had expired when active expiry saw them, smoothed: 0 to 1.
  std::atomic<double> stale_ratio{0};

  // Smoothed; 0 when no key expires.
  int64_t average_ttl_ms(size_t database) const {
    return static_cast<int64_t>(average_ttl_ms_[database].load(std::memory_order_relaxed));
  }
  // What a tick saw of one database; `any_expiring` tells whether it has expiring keys at all.
  void observe(size_t database, const TtlSample& sample, bool any_expiring) {
    std::atomic<double>& average_ms = average_ttl_ms_[database];
    double value = average_ms.load(std::memory_order_relaxed);
    if (!any_expiring) {
      value = 0;
    } else if (sample.count > 0) {
      const double seen = sample.sum_ms / static_cast<double>(sample.count);
      value = value == 0 ? seen : value + kWeightOfNewest * (seen - value);
    }
    average_ms.store(value, std::memory_order_relaxed);
  }
  // After SWAPDB.
  void swap(size_t first, size_t second) {
    const double value = average_ttl_ms_[first].load(std::memory_order_relaxed);
    average_ttl_ms_[first].store(average_ttl_ms_[second].load(std::memory_order_relaxed));
    average_ttl_ms_[second].store(value);
  }
  // CONFIG RESETSTAT: all but what describes the keys of now.
  void reset() {
    expired.store(0);
    ticks_cut_by_time.store(0);
    stale_ratio.store(0);
  }

 private:
  static constexpr double kWeightOfNewest = 0.02;
  std::vector<std::atomic<double>> average_ttl_ms_;
};

}  // namespace core::keyspace
