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
  std::atomic<uint64_t> evicted_keys{0};
  // How long maxmemory was exceeded while keys should have been evicted, and since when it is now;
  // 0 when it is not.
  std::atomic<uint64_t> eviction_exceeded_us{0};
  std::atomic<int64_t> eviction_exceeded_since_us{0};

  // CONFIG RESETSTAT: all but the peak, which Redis keeps too.
  void reset() {
    for (auto* gauge : {&operations_per_second, &input_bytes_per_second, &output_bytes_per_second,
                        &expire_cycle_us, &evicted_keys, &eviction_exceeded_us}) {
      gauge->store(0);
    }
    eviction_exceeded_since_us.store(0);
  }
};

}  // namespace server
