// SPDX-License-Identifier: MIT
#include "server/tools/run_tool.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "persistence/aof/aof_check.h"
#include "persistence/files/posix_io.h"
#include "persistence/rdb/rdb_check.h"
#include "server/base/process/build_info.h"
#include "server/base/process/compatibility.h"
#include "server/tools/build_filter.h"
#include "server/tools/export_snapshot.h"

namespace server {
namespace {

int finish(std::string_view text, bool is_good = true) {
  fmt::print("{}", text);
  return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int show_version(bool as_json) {
  const auto text = as_json ? version_json : version_text;
  return finish(text(kCompatibleRedisVersion, build_info()) + '\n');
}

int check_log(std::span<const std::string> arguments) {
  const LogCheck check = parse_log_check(arguments);
  const auto report = persistence::check_aof(persistence::posix_file_system(), check.path,
                                             {check.cuts_torn_end, check.keeps_until_s});
  return finish(report.text, report.is_sound);
}

// Runs a tool that writes a file. Prints the reason on standard error if it fails.
int write_file(core::Result<int> (*tool)(std::span<const std::string>),
               std::span<const std::string> arguments) {
  core::Result<int> exit_code = EXIT_FAILURE;
  try {
    exit_code = tool(arguments);
  } catch (const std::exception& error) {
    exit_code = core::Error{fmt::format("ended by an unexpected error: {}", error.what())};
  }
  if (exit_code) return *exit_code;
  fmt::print(stderr, "bloomery-server: {}\n", core::without_code(exit_code.error().message));
  return EXIT_FAILURE;
}

}  // namespace

std::optional<int> run_tool(Launch launch, const Config& config,
                            std::span<const std::string> arguments, HealthQuestion question) {
  switch (launch) {
    case Launch::kServe:
      return std::nullopt;
    case Launch::kShowVersion:
      return show_version(arguments.size() > 1);
    case Launch::kShowHelp:
      return finish(fmt::format("{}\n", help_text()));
    case Launch::kCheckSnapshot: {
      const auto verdict =
          persistence::check_rdb_file(persistence::posix_file_system(), arguments[1]);
      return finish(verdict.text, verdict.is_sound);
    }
    case Launch::kCheckLog:
      return check_log(arguments);
    case Launch::kCheckHealth: {
      const Health health = check_health(config, question);
      return finish(health.text + '\n', health.is_healthy);
    }
    case Launch::kBuildFilter:
      return write_file(build_filter, arguments);
    case Launch::kExportSnapshot:
      return write_file(export_snapshot, arguments);
  }
  return std::nullopt;
}

}  // namespace server
