// SPDX-License-Identifier: MIT
//
// LatencyHistogram: counts a command's calls by duration, in ticks of TickClock.
//
// Each power of two has 16 buckets, so the times in a bucket differ by less than a sixteenth. A
// time of fewer than 32 ticks has a bucket of its own.
//
// Invariants: a histogram has one writing thread, so adding needs no locked instruction.
// Thread safety: only one thread may call add(). Any thread may call the other members. A
// concurrent add() may undo the effect of reset() on one bucket.
// Source: Tene, HdrHistogram, 2012 (buckets of equal width within each power of two).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace server {

class LatencyHistogram {
 public:
  static constexpr unsigned kStepBits = 4;

  static size_t bucket_of(uint64_t ticks) {
    constexpr uint64_t kSteps = uint64_t{1} << kStepBits;
    const auto shift = static_cast<unsigned>(std::bit_width(ticks | kSteps)) - kStepBits - 1;
    return (size_t{shift} << kStepBits) + static_cast<size_t>(ticks >> shift);
  }
  // Returns the lowest number of ticks in the next bucket; 0 for the last bucket.
  static uint64_t end_of(size_t bucket) {
    constexpr size_t kSteps = size_t{1} << kStepBits;
    if (bucket < 2 * kSteps) return bucket + 1;
    const size_t shift = (bucket >> kStepBits) - 1;
    return uint64_t{bucket - (shift << kStepBits) + 1} << shift;
  }

  static uint64_t begin_of(size_t bucket) { return bucket == 0 ? 0 : end_of(bucket - 1); }

  void add(uint64_t ticks) {
    std::atomic<uint64_t>& count = counts_[bucket_of(ticks)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  void reset() {
    for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
  }

  static constexpr size_t kBucketCount = (64 - kStepBits + 1) << kStepBits;

 private:
  std::array<std::atomic<uint64_t>, kBucketCount> counts_{};
};

// LatencyCounts: the sum of several histograms, or of parts of histograms.
class LatencyCounts {
 public:
  void add(const LatencyHistogram& histogram) {
    counts_.resize(LatencyHistogram::kBucketCount);
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += histogram.count(i);
  }
  void add(size_t bucket, uint64_t count) {
    counts_.resize(LatencyHistogram::kBucketCount);
    counts_[bucket] += count;
  }
  uint64_t total() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }
  // Returns the number of calls that took at most `ticks`. If `ticks` lies inside a bucket, the
  // bucket's calls count in proportion to the part of the bucket's range up to `ticks`.
  uint64_t count_up_to(double ticks) const;
  // Returns a percentile of the calls' durations, in ticks. For a `percentage` of 50 it is the
  // median. REQUIRES: total() > 0.
  double percentile(double percentage) const;

 private:
  std::vector<uint64_t> counts_;
};

}  // namespace server
