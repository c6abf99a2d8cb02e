// SPDX-License-Identifier: MIT
#include "server/tools/run_tool.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "persistence/aof/aof_check.h"
#include "persistence/files/lock_file.h"
#include "persistence/files/open_file.h"
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

// Returns the data directories to which a log with a file at `path` may belong: the parents of the
// log's directory. There are two if a link leads to the file or to its directory.
std::set<std::filesystem::path> data_directories(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::set<fs::path> directories;
  for (const fs::path& file :
       {fs::absolute(path, error).lexically_normal(), fs::canonical(path, error)}) {
    const fs::path directory = fs::canonical(file.parent_path().parent_path(), error);
    if (!error) directories.insert(directory);
  }
  return directories;
}

// Locks the data directories of a log until the returned descriptors are closed. Skips directories
// without a lock file, because no server has used them. Errors: another process uses a directory.
core::Result<std::vector<core::Descriptor>> lock_log(const std::string& path) {
  std::vector<core::Descriptor> locks;
  for (const std::filesystem::path& directory : data_directories(path)) {
    const std::filesystem::path lock = directory / persistence::kLockFileName;
    std::error_code error;
    if (!std::filesystem::exists(lock, error) && !error) continue;
    auto file = persistence::open_file(lock.string(), O_RDWR | O_NOFOLLOW);
    if (!file) return file.error();
    const auto locked = persistence::try_lock(file->get(), lock.string());
    if (!locked) return locked.error();
    if (!*locked) {
      return core::Error{
          fmt::format("Another process uses the directory '{}': end it first, then run this again",
                      persistence::printable_path(directory.string()))};
    }
    locks.push_back(std::move(*file));
  }
  return {boost::system::in_place_value, std::move(locks)};
}

int check_log(std::span<const std::string> arguments) {
  const LogCheck check = parse_log_check(arguments);
  core::Result<std::vector<core::Descriptor>> locks = std::vector<core::Descriptor>();
  if (check.cuts_torn_end || check.keeps_until_s) locks = lock_log(check.path);
  if (!locks) return finish(fmt::format("{}\n", core::without_code(locks.error().message)), false);
  const auto report = persistence::check_aof(persistence::posix_file_system(), check.path,
                                             {check.cuts_torn_end, check.keeps_until_s});
  return finish(report.text, report.is_sound && !report.has_cut_failed);
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
