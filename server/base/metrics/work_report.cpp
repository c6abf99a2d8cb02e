// SPDX-License-Identifier: MIT
#include "server/base/metrics/work_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/base/log/log.h"
#include "server/base/log/progress_line.h"
#include "server/base/log/terminal.h"

namespace server {

WorkReport::WorkReport(std::string work, const core::Clock& clock)
    : work_(std::move(work)),
      clock_(clock),
      begun_us_(clock.monotonic_us()),
      next_line_us_(begun_us_ + kFirstLineUs) {}

WorkReport::~WorkReport() {
  clear_terminal(work_);
}

bool WorkReport::is_due(double share) {
  if (share >= 0) show_on_terminal(work_, share);
  const int64_t now_us = clock_.monotonic_us();
  if (now_us < next_line_us_) return false;
  next_line_us_ = now_us + kLinesEveryUs;
  return true;
}

void WorkReport::log(double share, const std::string& details) const {
  const auto elapsed_s = double(clock_.monotonic_us() - begun_us_) / core::kSecondUs;
  log_notice("{}: {}", work_, progress_text(share, details, elapsed_s));
}

std::string progress_text(double share, const std::string& details, double elapsed_s) {
  if (share < 0) return details;
  const double bounded = std::min(share, 1.0);
  std::string text = fmt::format("{:.0f} %, {}", bounded * 100, details);
  if (bounded > 0) {
    text += fmt::format(", about {} left", duration_text(elapsed_s * (1 - bounded) / bounded));
  }
  return text;
}

}  // namespace server
