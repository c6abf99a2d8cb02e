// SPDX-License-Identifier: MIT
#include "server/base/log/terminal.h"

#include <unistd.h>

#include <string>

#include "core/clock.h"
#include "server/base/log/progress_line.h"

namespace server {
namespace {

struct Terminal {
  core::SystemClock clock;
  std::mutex mutex;
  // `mutex` guards the progress line and the name of the work that it shows.
  ProgressLine line = ProgressLine::on_terminal(clock);
  std::string work;
};

Terminal& terminal() {
  static Terminal instance;
  return instance;
}

}  // namespace

void show_on_terminal(std::string_view work, double share) {
  Terminal& shown = terminal();
  const std::scoped_lock lock(shown.mutex);
  shown.work = work;
  shown.line.show(work, share);
}

void clear_terminal(std::string_view work) {
  Terminal& shown = terminal();
  const std::scoped_lock lock(shown.mutex);
  if (shown.work == work) shown.line.clear();
}

bool terminal_shows_log() {
  return ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

std::unique_lock<std::mutex> hold_terminal() {
  Terminal& shown = terminal();
  std::unique_lock lock(shown.mutex);
  shown.line.clear();
  return lock;
}

}  // namespace server
