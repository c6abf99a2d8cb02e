// SPDX-License-Identifier: MIT
//
// SaveProgress: how far a child that saves is, and how long it will take.
//
// What it will write is not known before it is written: the memory in use is taken for it, so that
// a share is too low where values compress. Thread safety: a value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace server {

struct SaveProgress {
  int64_t running_us = -1;  // -1: no child
  uint64_t written_bytes = 0;
  uint64_t expected_bytes = 0;
  uint64_t written_keys = 0;
  uint64_t total_keys = 0;

  // Of the bytes, below 1: the end is told by the child's end.
  double share() const {
    constexpr double kMax = 0.99;
    if (expected_bytes == 0) return 0;
    return std::min(kMax, static_cast<double>(written_bytes) / static_cast<double>(expected_bytes));
  }
  // -1 while there is nothing to judge by.
  int64_t left_s() const {
    if (running_us < 0 || written_bytes == 0 || share() == 0) return -1;
    const double left_us = static_cast<double>(running_us) * (1 - share()) / share();
    return static_cast<int64_t>(left_us / 1e6) + 1;
  }
};

}  // namespace server
