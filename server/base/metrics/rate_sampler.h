// SPDX-License-Identifier: MIT
//
// RateSampler: INFO's instantaneous rates: commands and bytes per second.
//
// Thread safety: one thread calls sample(). Any thread may read the gauges.
#pragma once

#include <cstdint>

#include "server/base/metrics/gauges.h"
#include "server/base/metrics/statistics.h"

namespace server {

class RateSampler {
 public:
  RateSampler(const Statistics& statistics, Gauges& gauges)
      : statistics_(statistics), gauges_(gauges) {}

  // Takes a sample. Must be called several times a second; `now_us` is monotonic. The first call
  // only stores the totals.
  void sample(int64_t now_us);

 private:
  struct Totals {
    int64_t time_us = 0;
    uint64_t commands = 0;
    uint64_t input_bytes = 0;
    uint64_t output_bytes = 0;
  };
  const Statistics& statistics_;
  Gauges& gauges_;
  Totals last_;
};

}  // namespace server
