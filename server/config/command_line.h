// SPDX-License-Identifier: MIT
//
// CommandLine: what the arguments of bloomery-server ask for.
//
// Invariants: `options_text` obeys the grammar of a configuration file, one option per line.
// Thread safety: a value.
// Source: the usage text of redis-server 7.0, whose start scripts must keep working.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace server {

// kCheckSnapshot and kCheckLog: the first argument after the option is the path. kCheckLog: a
// second one means that a torn end is to be cut off.
// kBuildFilter: the arguments are those of server/bulk/build_options.h.
// kExportSnapshot: those of server/bulk/export_snapshot.h.
// kCheckHealth: the other arguments are the server's own.
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
};

// `arguments` without the program's own name. Never fails: what makes no sense is refused later,
// together with the line it became.
CommandLine parse_command_line(std::span<const std::string> arguments);

std::string version_text();
std::string_view help_text();

}  // namespace server
