// SPDX-License-Identifier: MIT
//
// FilterCensus: sums over all filters, and statistics of the largest filters, for /metrics.
//
// A walk over all keys takes time in proportion to their number, so the walk is done in steps of
// bounded time. After a walk comes a pause about a thousand times as long as the walk's working
// time, but at most ten minutes. With few keys the statistics are current. With many keys they are
// some minutes old.
//
// Invariants: at most kLargestMax filters are stored. While tables grow, the sums may count a
// filter twice.
// Thread safety: one thread at a time may use an object. No locks are held between calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace core {
class Clock;
}
namespace core::keyspace {
class Keyspace;
}

namespace server::admin {

struct LargeFilter {
  unsigned database = 0;
  std::string key;
  uint64_t size_bytes = 0;
  uint64_t item_count = 0;
  uint64_t capacity = 0;
  size_t layer_count = 0;
  double fill_ratio = 0;
  double predicted_error_rate = 0;
  double error_rate = 0;                 // error rate that the filter was created with
  std::optional<uint64_t> items_left{};  // items_left of BF.STATS; nullopt if BF.STATS reports none
};

struct CensusFigures {
  uint64_t object_count = 0;
  uint64_t layer_count = 0;
  uint64_t item_count = 0;
  uint64_t capacity = 0;
  uint64_t memory_bytes = 0;
  std::vector<LargeFilter> largest;  // the largest filters, the largest first
};

// The position and the partial sums of a walk over the keyspace.
struct CensusWalk {
  unsigned database = 0;
  uint64_t cursor = 0;
  int64_t spent_us = 0;
  CensusFigures figures;
};

class FilterCensus {
 public:
  static constexpr size_t kLargestMax = 50;

  FilterCensus(core::keyspace::Keyspace& keyspace, const core::Clock& clock)
      : keyspace_(keyspace), clock_(clock) {}

  // Begins a walk if one is due, and continues it for about `budget_us`.
  void refresh(int64_t budget_us);
  // Continues a walk that has begun.
  void step(int64_t budget_us);
  // Returns the statistics of the last complete walk; nullopt before the first walk is complete.
  const std::optional<CensusFigures>& figures() const { return figures_; }

 private:
  void read_page(CensusWalk& walk);
  void finish();
  // Reads the filter's statistics again. Returns false if the key no longer holds a filter.
  bool describe(LargeFilter& filter) const;

  core::keyspace::Keyspace& keyspace_;
  const core::Clock& clock_;
  std::optional<CensusWalk> walk_;
  std::optional<CensusFigures> figures_;
  int64_t next_us_ = 0;  // earliest time at which the next walk may begin
};

}  // namespace server::admin
