// SPDX-License-Identifier: MIT
//
// The last log lines of level warning or above, stored in memory for the dashboard.
//
// Invariants: at most kRecentWarningsMax lines of kRecentWarningBytesMax bytes.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <spdlog/common.h>

#include <string>
#include <vector>

namespace server {

inline constexpr size_t kRecentWarningsMax = 100;
inline constexpr size_t kRecentWarningBytesMax = 500;

// Every logger of the process writes to this sink as well.
spdlog::sink_ptr recent_warnings_sink();
// Returns the lines as in the log file, without line breaks, oldest first.
std::vector<std::string> recent_warnings();

}  // namespace server
