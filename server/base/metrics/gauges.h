// SPDX-License-Identifier: MIT
//
// Gauges: measured values that the periodic tasks update for INFO.
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
  std::atomic<uint64_t> expire_cycle_us{0};
  std::atomic<uint64_t> evicted_keys{0};
  // The next two gauges measure the periods in which memory exceeds maxmemory although the policy
  // evicts keys. The first is the total duration of the ended periods. The second is the start of
  // the present period; 0 if there is none.
  std::atomic<uint64_t> eviction_exceeded_us{0};
  std::atomic<int64_t> eviction_exceeded_since_us{0};

  // Implements CONFIG RESETSTAT: resets all gauges.
  void reset() {
    for (auto* gauge : {&operations_per_second, &input_bytes_per_second, &output_bytes_per_second,
                        &expire_cycle_us, &evicted_keys, &eviction_exceeded_us}) {
      gauge->store(0);
    }
    eviction_exceeded_since_us.store(0);
  }
};

}  // namespace server
