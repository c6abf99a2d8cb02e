// SPDX-License-Identifier: MIT
//
// ProgressBar: how far the offline builder is, as one line of a terminal that is written over.
//
// Invariants: writes at most ten times a second, and each step's beginning; clear() leaves nothing
// of the line. Thread safety: none; one user at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "persistence/bulk/filter_file.h"

namespace server {

// The line without its control sequences: a bar where the end is known, otherwise the work done.
std::string progress_text(const persistence::BuildProgress& progress);

class ProgressBar {
 public:
  using Write = std::function<void(std::string_view text)>;
  // The clock must outlive it.
  ProgressBar(const core::Clock& clock, Write write) : clock_(clock), write_(std::move(write)) {}

  void show(const persistence::BuildProgress& progress);
  void clear();

 private:
  const core::Clock& clock_;
  const Write write_;
  int64_t next_us_ = 0;
  // The step that the line shows; nullopt when the line is clear.
  std::optional<persistence::BuildStep> step_;
};

}  // namespace server
