// SPDX-License-Identifier: MIT
//
// StreamFigures: INFO's counters of the commands in the leader's stream.
//
// Thread safety: all members may be used from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace server {

struct StreamFigures {
  std::atomic<uint64_t> failed_commands{0};
  std::atomic<uint64_t> skipped_commands{0};
};

}  // namespace server
