// SPDX-License-Identifier: MIT
#include "server/base/latency/latency_histogram.h"

#include <cmath>

namespace server {
namespace {

double begin_of(size_t bucket) {
  return static_cast<double>(LatencyHistogram::begin_of(bucket));
}

double width_of(size_t bucket) {
  // end_of() of the last bucket would be 2^64 and is therefore 0. Unsigned arithmetic wraps around,
  // so the width of that bucket is correct, too.
  return static_cast<double>(LatencyHistogram::end_of(bucket) - LatencyHistogram::begin_of(bucket));
}

}  // namespace

uint64_t LatencyCounts::count_up_to(double ticks) const {
  double sum = 0;
  for (size_t i = 0; i < counts_.size() && begin_of(i) <= ticks; ++i) {
    const double part = std::min(1.0, (ticks - begin_of(i)) / width_of(i));
    sum += static_cast<double>(counts_[i]) * part;
  }
  return static_cast<uint64_t>(sum);
}

double LatencyCounts::percentile(double percentage) const {
  const double wanted = std::max(1.0, std::ceil(static_cast<double>(total()) * percentage / 100));
  double before = 0;
  double longest = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const auto count = static_cast<double>(counts_[i]);
    longest = begin_of(i) + width_of(i);
    if (before + count >= wanted) return begin_of(i) + width_of(i) * (wanted - before) / count;
    before += count;
  }
  return longest;
}

}  // namespace server
