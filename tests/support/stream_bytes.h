// SPDX-License-Identifier: MIT
//
// Encodes a command as the journal does.
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
