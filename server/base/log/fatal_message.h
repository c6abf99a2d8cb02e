// SPDX-License-Identifier: MIT
//
// Reports the message of a process that must end, to its log and to the terminal.
//
// Thread safety: any thread may call the function. log.cpp implements the function, because it
// knows where the log is written.
#pragma once

#include <string_view>

namespace server {

// Writes the message to the log. Also writes it to standard error, unless standard output shows the
// log, because a terminal would then show it twice.
void report_fatal(std::string_view message);

}  // namespace server
