// SPDX-License-Identifier: MIT
#include "server/tools/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>

namespace server {
namespace {

using persistence::BuildProgress;
using persistence::BuildStep;

constexpr int64_t kIntervalUs = core::kSecondUs / 10;
// The control sequence that moves the cursor to the start of the line and erases the line.
constexpr std::string_view kWipe = "\r\x1b[K";

std::string_view name_of(BuildStep step) {
  switch (step) {
    case BuildStep::kCount:
      return "counting";
    case BuildStep::kAdd:
      return "adding  ";
    case BuildStep::kWrite:
      return "writing ";
  }
  return {};
}

}  // namespace

std::string progress_text(const BuildProgress& progress) {
  const std::string items = fmt::format("{:.1f} M items", double(progress.record_count) / 1e6);
  if (progress.total_bytes == 0) {
    return fmt::format("{} {} MB  {}", name_of(progress.step), progress.done_bytes / 1'000'000,
                       items);
  }
  constexpr int kBarColumns = 30;
  const double share = std::min(1.0, double(progress.done_bytes) / double(progress.total_bytes));
  const int done = static_cast<int>(share * kBarColumns);
  return fmt::format("{} [{:=<{}}{: <{}}] {:3.0f} %  {}", name_of(progress.step), "", done, "",
                     kBarColumns - done, share * 100, items);
}

void ProgressBar::show(const BuildProgress& progress) {
  const int64_t now_us = clock_.monotonic_us();
  if (step_ == progress.step && now_us < next_us_) return;
  next_us_ = now_us + kIntervalUs;
  step_ = progress.step;
  write_(fmt::format("{}{}", kWipe, progress_text(progress)));
}

void ProgressBar::clear() {
  if (step_) write_(kWipe);
  step_.reset();
}

}  // namespace server
