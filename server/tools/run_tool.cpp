// SPDX-License-Identifier: MIT
#include "server/tools/run_tool.h"

#include <fmt/format.h>

#include <cstdlib>

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
      return build_filter(arguments);
    case Launch::kExportSnapshot:
      return export_snapshot(arguments);
  }
  return std::nullopt;
}

}  // namespace server
