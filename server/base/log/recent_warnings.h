// SPDX-License-Identifier: MIT
//
// Stores the last log lines of level warning or above in memory, for the dashboard.
//
// Invariants: there are at most kRecentWarningsMax lines of at most kRecentWarningBytesMax bytes.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <spdlog/common.h>

#include <string>
#include <vector>

namespace server {

inline constexpr size_t kRecentWarningsMax = 100;
inline constexpr size_t kRecentWarningBytesMax = 500;

// Returns the sink that stores the lines. Every logger of the process also writes to it.
spdlog::sink_ptr recent_warnings_sink();
// Returns the stored lines as they are in the log file, without line breaks, the oldest first.
std::vector<std::string> recent_warnings();

}  // namespace server
