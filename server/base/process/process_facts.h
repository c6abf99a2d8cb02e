// SPDX-License-Identifier: MIT
//
// ProcessFacts: constants of the running process.
//
// Thread safety: any thread may read the facts, which are constant after the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace server {

struct ProcessFacts {
  std::string run_id;  // random id of 40 hexadecimal digits, chosen at every start
  std::string executable;
  int64_t started_ms = 0;
  size_t io_thread_count = 1;
  std::string config_file;  // path of the configuration file; empty if there is none
};

// Returns the path of the running program; empty if the system does not provide it.
inline std::string own_executable() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace server
