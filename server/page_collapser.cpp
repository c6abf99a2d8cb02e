// SPDX-License-Identifier: MIT
#include "server/page_collapser.h"

#include <algorithm>
#include <utility>

#include "server/base/log/log.h"

namespace server {
namespace {

// Returns the present value of `pause`. Doubles `pause` for the next call, but not beyond `most`.
PageCollapser::Pause next_pause(PageCollapser::Pause& pause, PageCollapser::Pause most) {
  return std::exchange(pause, std::min(2 * pause, most));
}

}  // namespace

PageCollapser::PageCollapser(const core::Clock& clock)
    : PageCollapser(clock, [] { return core::bloom::HugePages::of_process().step(); }) {}

PageCollapser::PageCollapser(const core::Clock& clock, std::function<Step()> step)
    : clock_(clock), step_(std::move(step)) {}

void PageCollapser::set_enabled(bool is_enabled) {
  is_enabled_ = is_enabled;
  if (!is_enabled) return;
  if (thread_.is_running()) {
    thread_.wake();
  } else {
    thread_.start([this] { return tick(); });
  }
}

PageCollapser::Pause PageCollapser::tick() {
  if (!is_enabled_ || !is_supported_) return kIdlePause;
  const int64_t begun_us = clock_.monotonic_us();
  const Step step = step_();
  return pause_after(step, clock_.monotonic_us() - begun_us);
}

PageCollapser::Pause PageCollapser::pause_after(Step step, int64_t took_us) {
  constexpr int64_t kPausesPerStep = 9;
  const Pause share = std::min(Pause{took_us * kPausesPerStep / 1000 + 1}, kPiecePauseMax);
  switch (step) {
    case Step::kContinues:
      return share;
    case Step::kCollapsed:
      pass_pause_ = kPassPauseMin;
      retry_pause_ = kRetryPauseMin;
      return share;
    case Step::kFailed:
      return std::max(share, next_pause(retry_pause_, kRetryPauseMax));
    case Step::kPassEnded:
      return next_pause(pass_pause_, kPassPauseMax);
    case Step::kUnsupported:
      break;
  }
  is_supported_ = false;
  log_notice(
      "This kernel cannot collapse filters' memory into huge pages (MADV_COLLAPSE, Linux 6.1): big "
      "filters keep small pages");
  return kIdlePause;
}

}  // namespace server
