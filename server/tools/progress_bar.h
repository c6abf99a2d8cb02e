// SPDX-License-Identifier: MIT
//
// ProgressBar: shows the progress of the offline builder in one terminal line, which is
// overwritten.
//
// Invariants: writes when a step begins, otherwise at most ten times a second; clear() erases the
// whole line.
// Thread safety: one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "persistence/bulk/filter_file.h"

namespace server {

// Returns the line without its control sequences. Shows a bar if the amount of work is known,
// otherwise the work done so far.
std::string progress_text(const persistence::BuildProgress& progress);

class ProgressBar {
 public:
  using Write = std::function<void(std::string_view text)>;
  // `clock` must outlive the object.
  ProgressBar(const core::Clock& clock, Write write) : clock_(clock), write_(std::move(write)) {}

  void show(const persistence::BuildProgress& progress);
  void clear();

 private:
  const core::Clock& clock_;
  const Write write_;
  int64_t next_us_ = 0;
  // The step that the line shows; nullopt if the line is erased.
  std::optional<persistence::BuildStep> step_;
};

}  // namespace server
