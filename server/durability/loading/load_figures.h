// SPDX-License-Identifier: MIT
//
// LoadFigures: the progress of loading files.
//
// Thread safety: the thread that loads writes the values, and any thread may read them. Times are
// monotonic.
#pragma once

#include <atomic>
#include <cstdint>

namespace server {

struct LoadFigures {
  std::atomic<uint64_t> total_bytes{0};
  std::atomic<uint64_t> loaded_bytes{0};
  std::atomic<uint64_t> loaded_keys{0};
  std::atomic<uint64_t> expired_keys{0};
  std::atomic<uint64_t> foreign_keys{0};
  std::atomic<int64_t> started_us{0};
  // The kind of the data loaded ("snapshot" or "append log") and the duration of the load in
  // microseconds. Null before any load.
  std::atomic<const char*> source{nullptr};
  std::atomic<int64_t> took_us{0};

  // Called when a load begins. The outcome of the previous load stays until this one has ended.
  void begin(int64_t now_us) {
    total_bytes = 0;
    loaded_bytes = 0;
    loaded_keys = 0;
    expired_keys = 0;
    foreign_keys = 0;
    started_us = now_us;
  }

  // Returns the loaded fraction of the bytes, 0 to 1.
  double share() const {
    const uint64_t total = total_bytes.load();
    const uint64_t loaded = loaded_bytes.load();
    return loaded < total ? static_cast<double>(loaded) / static_cast<double>(total) : 1;
  }
};

}  // namespace server
