// SPDX-License-Identifier: MIT
//
// SaveProgress: the progress of a child that saves, and the estimated time left.
//
// The final size is not known in advance, so the memory in use serves as an estimate. If values
// compress well, the estimated fraction is too low.
// Thread safety: a value shared by threads needs a lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace server {

struct SaveProgress {
  int64_t running_us = -1;  // time since the child was forked; -1 if no child is running
  uint64_t written_bytes = 0;
  uint64_t expected_bytes = 0;
  uint64_t written_keys = 0;
  uint64_t total_keys = 0;

  // Returns the estimated fraction that is written. It is at most 0.99, because the save is
  // complete only when the child exits.
  double share() const {
    constexpr double kMax = 0.99;
    if (expected_bytes == 0) return 0;
    return std::min(kMax, static_cast<double>(written_bytes) / static_cast<double>(expected_bytes));
  }
  // Returns the estimated time left in seconds; -1 while no estimate is possible.
  int64_t left_s() const {
    if (running_us < 0 || written_bytes == 0 || share() == 0) return -1;
    const double left_us = static_cast<double>(running_us) * (1 - share()) / share();
    return static_cast<int64_t>(left_us / 1e6) + 1;
  }
};

}  // namespace server
