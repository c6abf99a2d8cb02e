// SPDX-License-Identifier: MIT
//
// ProgressLine: how far long work is, as one line of a terminal that is written over.
//
// Invariants: writes at most ten times a second, and at each change of the work's name; clear()
// leaves nothing of the line.
// Thread safety: none; one user at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace server {

// "[======      ]  50 %" of a share from 0 to 1.
std::string progress_bar_text(double share);
// "3 s", "2 min", "1 h 5 min".
std::string duration_text(double seconds);

class ProgressLine {
 public:
  using Write = std::function<void(std::string_view text)>;
  // The clock must outlive it.
  ProgressLine(const core::Clock& clock, Write write) : clock_(clock), write_(std::move(write)) {}

  // Writes to standard error; to nowhere when that is no terminal.
  static ProgressLine on_terminal(const core::Clock& clock);

  // The work is named as a person would: "loading". `share` from 0 to 1.
  void show(std::string_view work, double share);
  void clear();

 private:
  const core::Clock& clock_;
  const Write write_;
  int64_t begun_us_ = 0;
  int64_t next_us_ = 0;
  std::string work_;  // of what the line shows; empty when it is clear
};

}  // namespace server
