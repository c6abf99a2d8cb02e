// SPDX-License-Identifier: MIT
#include "server/tools/export_snapshot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/clock.h"
#include "core/printable.h"
#include "persistence/files/file_system.h"
#include "server/base/log/progress_line.h"
#include "server/base/process/compatibility.h"
#include "server/tools/signal_cleanup.h"
#include "server/tools/temporary_output.h"

namespace server {
namespace {

using persistence::ExportFigures;
using persistence::ExportRequest;

constexpr std::string_view kExportUsage =
    "Usage: bloomery-server --export-rdb dump.rdb out.rdb [--target redis|redisbloom|valkey-bloom]"
    " [--overwrite]";
// The number of databases of a server whose configuration does not set the option `databases`.
constexpr uint64_t kDefaultDatabases = 16;

bool is_path(std::span<const std::string> arguments, size_t index) {
  return index < arguments.size() && !arguments[index].empty() &&
         !arguments[index].starts_with("--");
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

core::Result<int> run_export(ExportRequest request) {
  const core::SystemClock clock;
  request.server_version = kCompatibleRedisVersion;
  request.created_at_s = clock.wall_ms() / 1000;
  ProgressLine line = ProgressLine::on_terminal(clock);
  request.on_progress = [&line](uint64_t done_bytes, uint64_t total_bytes) {
    line.show("exporting", double(done_bytes) / double(std::max<uint64_t>(1, total_bytes)));
  };
  const SignalCleanup cleanup(request.place.temporary);
  const auto exported = persistence::export_rdb(persistence::posix_file_system(), request);
  line.clear();
  if (!exported) return exported.error();
  fmt::print("{}", describe_export(request, *exported));
  return exported->left_out.empty() ? EXIT_SUCCESS : kExitSomethingLeftOut;
}

}  // namespace

core::Result<ExportRequest> parse_export_options(std::span<const std::string> arguments) {
  if (!is_path(arguments, 1) || !is_path(arguments, 2)) {
    return core::Error{fmt::format("--export-rdb takes two paths\n{}", kExportUsage)};
  }
  ExportRequest request;
  request.source = arguments[1];
  request.place.path = arguments[2];
  request.place.temporary = temporary_output(arguments[2], random_file_number(), "rdb");
  for (size_t i = 3; i < arguments.size(); ++i) {
    if (arguments[i] == "--overwrite") {
      request.may_replace = true;
      continue;
    }
    if (arguments[i] != "--target") {
      return core::Error{fmt::format("--export-rdb does not know '{}'\n{}",
                                     core::printable(arguments[i]), kExportUsage)};
    }
    const std::string_view name = ++i < arguments.size() ? arguments[i] : std::string_view();
    request.target = persistence::parse_export_target(name);
    if (!request.target) {
      return core::Error{fmt::format("--target takes redis, redisbloom or valkey-bloom, not '{}'",
                                     core::printable(name))};
    }
  }
  // The source file is not overwritten. It is the only copy of the data until another server has
  // loaded the new file.
  if (is_same_file(request.source, request.place.path)) {
    return core::Error{std::string(kExportToItsSource)};
  }
  return request;
}

std::string describe_export(const ExportRequest& request, const ExportFigures& figures) {
  std::string text =
      fmt::format("{}: for {}, {} and {}, {} bytes{}\n", core::printable(request.place.path),
                  export_target_name(figures.target), counted(figures.string_count, "string"),
                  counted(figures.filter_count, "filter"), figures.file_bytes,
                  figures.replaced ? "; replaced the file that was there" : "");
  if (figures.database_max >= kDefaultDatabases) {
    text += fmt::format("the highest database is {}: the other server needs `databases {}`\n",
                        figures.database_max, figures.database_max + 1);
  }
  for (const auto& [kind, left_out] : figures.left_out) {
    text += fmt::format("left out: {}", counted(left_out.count, kind));
    if (!left_out.names.empty()) text += fmt::format(": {}", fmt::join(left_out.names, ", "));
    text += left_out.names.empty() || left_out.count == left_out.names.size() ? "\n" : ", ...\n";
  }
  return text;
}

core::Result<int> export_snapshot(std::span<const std::string> arguments) {
  auto request = parse_export_options(arguments);
  if (!request) return request.error();
  return run_export(std::move(*request));
}

}  // namespace server
