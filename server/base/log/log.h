// SPDX-License-Identifier: MIT
//
// Log: lines in Redis' form, "PID:M 20 Nov 2026 09:37:03.456 * text", through spdlog.
//
// Invariants: a line contains no line break and no other control character from outside, because
// they are escaped when lines are formatted.
// Thread safety: all functions may be called from any thread.
// Source: https://github.com/gabime/spdlog
#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/base/config/config.h"

namespace server {

// Opens the log. `file` is a path, or empty for standard output. If log rotation has renamed or
// removed the file, the next line reopens the path. The file is checked at most once per
// `look_interval`. Errors: the file cannot be opened.
core::Result<> open_log(LogLevel level, const std::string& file,
                        std::chrono::milliseconds look_interval = std::chrono::seconds(1));
void set_log_level(LogLevel level);
void flush_log();

// The functions below log a line at Redis' level verbose, notice or warning. As in Redis, errors
// have the mark of warnings, '#'.
template <class... Args>
void log_verbose(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::debug(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_notice(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::info(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::warn(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::error(format, std::forward<Args>(args)...);
}

}  // namespace server
