// SPDX-License-Identifier: MIT
//
// ProcessFacts: constants of the running process.
//
// Thread safety: constant after the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace server {

struct ProcessFacts {
  std::string run_id;  // 40 hexadecimal digits, new at every start
  std::string executable;
  int64_t started_ms = 0;
  size_t io_thread_count = 1;
  std::string config_file;  // empty when there is none
};

}  // namespace server
