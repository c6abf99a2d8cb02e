// SPDX-License-Identifier: MIT
//
// PageCollapser: a thread that moves big filter arrays into huge pages, one piece after the other.
// A piece with untouched pages is skipped.
//
// After each move of a piece, the thread pauses for nine times as long as the move took. So it uses
// about a tenth of a processor. It takes no lock of the keyspace. If a command accesses a piece
// during its move, the command's thread waits until the kernel has copied the piece.
//
// Invariants: the thread starts when the option is `auto` for the first time. A forked child has no
// such thread.
// Thread safety: one thread at a time may call set_enabled() and stop(). tick() runs on one thread,
// and is public for tests.
// Source: docs/bloom_math.md, "Huge pages"; core/bloom/arrays/huge_pages.h.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "core/bloom/arrays/huge_pages.h"
#include "core/clock.h"
#include "server/base/process/tick_thread.h"

namespace server {

class PageCollapser {
 public:
  using Pause = std::chrono::milliseconds;
  using Step = core::bloom::HugePages::Step;

  // The longest pause between two pieces. A pause is proportional to the time that the last piece
  // took. The limit matters on a busy machine, where this time includes waits for a processor.
  static constexpr Pause kPiecePauseMax{50};
  // The pause after a pass over all arrays. It doubles while nothing is found to collapse.
  static constexpr Pause kPassPauseMin{5'000};
  static constexpr Pause kPassPauseMax{30'000};
  // The pause after a piece for which the kernel had no memory. It doubles after each further
  // failure, until a piece is collapsed.
  static constexpr Pause kRetryPauseMin{1'000};
  static constexpr Pause kRetryPauseMax{60'000};
  // How long the thread sleeps at a time while collapsing is disabled, or if the kernel does not
  // support collapsing. A call of set_enabled(true) wakes the thread.
  static constexpr Pause kIdlePause{3'600'000};

  explicit PageCollapser(const core::Clock& clock);
  // For tests: `step` replaces HugePages::step().
  PageCollapser(const core::Clock& clock, std::function<Step()> step);

  // Does not wait for the thread, so one more piece may be collapsed after set_enabled(false).
  void set_enabled(bool is_enabled);
  // Ends the thread. Returns when the thread has finished its current piece.
  void stop() { thread_.stop(); }
  // Calls HugePages::step() once if collapsing is enabled. Returns the pause until the next tick().
  Pause tick();

 private:
  Pause pause_after(Step step, int64_t took_us);

  const core::Clock& clock_;
  const std::function<Step()> step_;
  std::atomic<bool> is_enabled_{false};
  // The members below belong to the thread.
  bool is_supported_ = true;
  Pause pass_pause_ = kPassPauseMin;
  Pause retry_pause_ = kRetryPauseMin;
  TickThread thread_{"huge-pages"};
};

}  // namespace server
