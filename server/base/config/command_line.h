// SPDX-License-Identifier: MIT
//
// CommandLine: the parsed arguments of bloomery-server.
//
// Invariants: `options_text` obeys the grammar of a configuration file, one option per line.
// Thread safety: each object belongs to one thread.
// Source: the usage text of redis-server 7.0, whose start scripts must keep working.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace server {

// The mode in which the program runs. `kShowVersion`: --json may follow.
//
// `kCheckSnapshot`: the argument after the option is the path.
// `kCheckLog`: parse_log_check() reads the arguments.
// `kBuildFilter`: the arguments are those of server/tools/build_options.h.
// `kExportSnapshot`: the arguments are those of server/tools/export_snapshot.h.
// `kCheckHealth`: the arguments after --health-check are those of a server start.
enum class Launch {
  kServe,
  kShowVersion,
  kShowHelp,
  kCheckSnapshot,
  kCheckLog,
  kCheckHealth,
  kBuildFilter,
  kExportSnapshot
};

struct CommandLine {
  Launch launch = Launch::kServe;
  std::string config_path{};  // path of the configuration file; empty if none was given
  bool reads_stdin = false;   // true if the first or last argument is '-'

  // The options as lines of a configuration file, such as `--port 7000 --save ""`.
  std::string options_text{};
  std::string usage_error{};  // the text to print before exiting; empty if the arguments are valid
};

// Parses the arguments, without the program's name. An invalid option is rejected later, with its
// line in the error text.
CommandLine parse_command_line(std::span<const std::string> arguments);

// LogCheck: the arguments of --check-aof. They select the log, and the commands to remove from its
// end.
struct LogCheck {
  std::string path;            // path of the log; empty if the arguments are invalid
  bool cuts_torn_end = false;  // --fix: an incomplete last command is removed
  // --truncate-to-timestamp: Unix time in seconds. Later commands are removed.
  std::optional<uint64_t> keeps_until_s;
};

// Parses the arguments, without the program's name: --check-aof and the path of the log. The
// options --fix and --truncate-to-timestamp SECONDS may come before or after the path.
LogCheck parse_log_check(std::span<const std::string> arguments);

std::string_view help_text();

}  // namespace server
