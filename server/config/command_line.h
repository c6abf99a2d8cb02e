// SPDX-License-Identifier: MIT
//
// CommandLine: the parsed arguments of bloomery-server.
//
// Invariants: `options_text` obeys the grammar of a configuration file, one option per line.
// Thread safety: a value.
// Source: the usage text of redis-server 7.0, whose start scripts must keep working.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace server {

// `kShowVersion`: --json may follow.
//
// `kCheckSnapshot`: the argument after the option is the path.
// `kCheckLog`: parse_log_check() reads the arguments.
// `kBuildFilter`: the arguments are those of server/bulk/build_options.h.
// `kExportSnapshot`: those of server/bulk/export_snapshot.h.
// `kCheckHealth`: the other arguments are the server's own.
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
  std::string config_path;   // empty: none was given
  bool reads_stdin = false;  // a lone '-', first or last
  std::string options_text;  // `--port 7000 --save ""` as lines
  std::string usage_error;   // the text to print before exiting; empty: there is none
};

// `arguments` without the program's own name. An option that makes no sense is refused later,
// together with the line it became.
CommandLine parse_command_line(std::span<const std::string> arguments);

// The log that --check-aof reads, and the end that it cuts off.
struct LogCheck {
  std::string path;  // empty: the arguments are no such call
  bool cuts_torn_end = false;
  std::optional<uint64_t> keeps_until_s;  // unix time: all that is later is cut off
};

// `arguments` without the program's own name: --check-aof, the path, and --fix or
// --truncate-to-timestamp SECONDS before or after it.
LogCheck parse_log_check(std::span<const std::string> arguments);

std::string_view help_text();

}  // namespace server
