// SPDX-License-Identifier: MIT
//
// The progress line of the process: what a person who watches the terminal sees of long work.
//
// Invariants: nothing is written unless standard error is a terminal. A line of the log that goes
// to a terminal, too, takes the progress line away first: the two never mix.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <mutex>
#include <string_view>

namespace server {

// `share` from 0 to 1. Of two works at once the later one is shown.
void show_on_terminal(std::string_view work, double share);
// The work has ended.
void clear_terminal(std::string_view work);

// Whether the log and the progress line would meet on one terminal.
bool terminal_shows_log();
// While it is held the line is away.
[[nodiscard]] std::unique_lock<std::mutex> hold_terminal();

}  // namespace server
