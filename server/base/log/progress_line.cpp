// SPDX-License-Identifier: MIT
#include "server/base/log/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace server {
namespace {

constexpr int64_t kShownEveryUs = core::kSecondUs / 10;
// The remaining time is shown only once the work has lasted this long, because an earlier estimate
// would be too inaccurate.
constexpr int64_t kSilentUs = core::kSecondUs / 2;
// The control sequence that returns to the start of the line and erases it.
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

std::string progress_bar_text(double share) {
  constexpr int kBarColumns = 30;
  const double bounded = std::clamp(share, 0.0, 1.0);
  const int done = static_cast<int>(bounded * kBarColumns);
  return fmt::format("[{:=<{}}{: <{}}] {:3.0f} %", "", done, "", kBarColumns - done, bounded * 100);
}

std::string duration_text(double seconds) {
  constexpr int64_t kMinuteS = 60;
  constexpr int64_t kHourS = 60 * kMinuteS;
  const auto whole = static_cast<int64_t>(std::ceil(std::max(0.0, seconds)));
  if (whole < 2 * kMinuteS) return fmt::format("{} s", whole);
  if (whole < 2 * kHourS) return fmt::format("{} min", whole / kMinuteS);
  return fmt::format("{} h {} min", whole / kHourS, whole % kHourS / kMinuteS);
}

ProgressLine ProgressLine::on_terminal(const core::Clock& clock) {
  if (::isatty(STDERR_FILENO) != 1) return {clock, nullptr};
  return {clock, [](std::string_view text) {
            fmt::print(stderr, "{}", text);
            std::fflush(stderr);
          }};
}

void ProgressLine::show(std::string_view work, double share, std::string_view details) {
  if (!write_) return;
  const int64_t now_us = clock_.monotonic_us();
  const bool is_new = work_ != work;
  if (!is_new && now_us < next_us_) return;
  if (is_new) begun_us_ = now_us;
  work_ = work;
  next_us_ = now_us + kShownEveryUs;
  std::string text = fmt::format("{}{}", kWipe, work);
  if (share >= 0) text += fmt::format(" {}", progress_bar_text(share));
  if (!details.empty()) text += fmt::format("  {}", details);
  const auto elapsed_us = static_cast<double>(now_us - begun_us_);
  if (elapsed_us >= kSilentUs && share > 0 && share < 1) {
    const double left_s = elapsed_us / core::kSecondUs * (1 - share) / share;
    text += fmt::format("  {} left", duration_text(left_s));
  }
  write_(text);
}

void ProgressLine::clear() {
  if (!work_.empty()) write_(kWipe);
  work_.clear();
}

}  // namespace server
