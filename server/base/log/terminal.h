// SPDX-License-Identifier: MIT
//
// Shows long work of the process on the terminal, in a progress line.
//
// Invariants: nothing is written unless standard error is a terminal. A log line that goes to a
// terminal first erases the progress line, so the two never mix.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <mutex>
#include <string_view>

namespace server {

// Shows the progress of `work`. `share` is the completed fraction of the work, from 0 to 1. If two
// tasks report progress at the same time, the line shows the task of the latest call.
void show_on_terminal(std::string_view work, double share);
// Erases the progress line if it shows `work`. Must be called when the work has ended.
void clear_terminal(std::string_view work);

// Returns whether the log and the progress line share one terminal.
bool terminal_shows_log();
// Locks the terminal: while the returned lock is held, no progress line is shown.
[[nodiscard]] std::unique_lock<std::mutex> hold_terminal();

}  // namespace server
