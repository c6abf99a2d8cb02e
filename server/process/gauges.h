// SPDX-License-Identifier: MIT
//
// Gauges: figures that the periodic tasks keep for INFO.
//
// Thread safety: all members may be used from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace server {

struct Gauges {
  std::atomic<uint64_t> operations_per_second{0};
  std::atomic<uint64_t> input_bytes_per_second{0};
  std::atomic<uint64_t> output_bytes_per_second{0};
  std::atomic<uint64_t> clients_peak{0};
  std::atomic<uint64_t> expire_cycle_us{0};

  // CONFIG RESETSTAT: all but the peak, which Redis keeps too.
  void reset() {
    for (auto* gauge : {&operations_per_second, &input_bytes_per_second, &output_bytes_per_second,
                        &expire_cycle_us}) {
      gauge->store(0);
    }
  }
};

}  // namespace server
