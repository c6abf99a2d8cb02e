// SPDX-License-Identifier: MIT
#include "server/base/metrics/rate_sampler.h"

#include <utility>

namespace server {

void RateSampler::sample(int64_t now_us) {
  const Totals now{now_us, statistics_.total(&ThreadStatistics::commands_processed),
                   statistics_.total(&ThreadStatistics::input_bytes),
                   statistics_.total(&ThreadStatistics::output_bytes)};
  const Totals before = std::exchange(last_, now);
  if (before.time_us == 0) return;
  const int64_t elapsed_us = now_us - before.time_us;
  // If CONFIG RESETSTAT has reset a total after the previous sample, the rate is reported as 0.
  const auto rate = [elapsed_us](uint64_t total, uint64_t total_before) -> uint64_t {
    if (elapsed_us <= 0 || total < total_before) return 0;
    return (total - total_before) * 1'000'000 / static_cast<uint64_t>(elapsed_us);
  };
  gauges_.operations_per_second.store(rate(now.commands, before.commands));
  gauges_.input_bytes_per_second.store(rate(now.input_bytes, before.input_bytes));
  gauges_.output_bytes_per_second.store(rate(now.output_bytes, before.output_bytes));
}

}  // namespace server
