// SPDX-License-Identifier: MIT
//
// The message of a process that must end, for its log and for the terminal.
//
// Thread safety: any thread. Implemented in log.cpp, which knows where the log goes.
#pragma once

#include <string_view>

namespace server {

// Writes the message to the log. Writes it to standard error as well, unless standard output shows
// the log: a terminal would show the message twice.
void report_fatal(std::string_view message);

}  // namespace server
