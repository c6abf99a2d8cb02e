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

  // Returns the loaded fraction of the bytes, 0 to 1.
  double share() const {
    const uint64_t total = total_bytes.load();
    const uint64_t loaded = loaded_bytes.load();
    return loaded < total ? static_cast<double>(loaded) / static_cast<double>(total) : 1;
  }
};

}  // namespace server
