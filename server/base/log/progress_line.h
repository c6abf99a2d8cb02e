// SPDX-License-Identifier: MIT
//
// ProgressLine: shows the progress of long work on a terminal, in one line that each update
// overwrites.
//
// Invariants: writes at most ten times a second, and at each change of the work's name; clear()
// erases the line.
// Thread safety: one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/clock.h"

namespace server {

// Returns a bar such as "[======      ]  50 %". `share` is the completed fraction of the work, from
// 0 to 1.
std::string progress_bar_text(double share);
// Returns a duration such as "3 s", "2 min" or "1 h 5 min".
std::string duration_text(double seconds);

class ProgressLine {
 public:
  using Write = std::function<void(std::string_view text)>;
  // `clock` must outlive the object.
  ProgressLine(const core::Clock& clock, Write write) : clock_(clock), write_(std::move(write)) {}

  // Returns a ProgressLine that writes to standard error. If standard error is no terminal, the
  // ProgressLine writes nothing.
  static ProgressLine on_terminal(const core::Clock& clock);

  // Shows the progress. `work` names the work, such as "loading". `share` is its completed
  // fraction, from 0 to 1; below 0 if it is unknown. `details` follow the bar if they are not
  // empty.
  void show(std::string_view work, double share, std::string_view details = {});
  void clear();

 private:
  const core::Clock& clock_;
  const Write write_;
  int64_t begun_us_ = 0;
  int64_t next_us_ = 0;
  std::string work_;  // name of the work that the line shows; empty if the line is erased
};

}  // namespace server
