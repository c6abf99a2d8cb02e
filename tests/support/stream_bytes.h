// SPDX-License-Identifier: MIT
//
// The bytes of commands as the journal writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "persistence/journal.h"

namespace server {

inline std::string command(const std::vector<std::string_view>& words) {
  std::string bytes;
  persistence::append_command(bytes, words);
  return bytes;
}

inline std::string commands(const std::vector<std::vector<std::string_view>>& all) {
  std::string bytes;
  for (const auto& words : all) persistence::append_command(bytes, words);
  return bytes;
}

}  // namespace server
