// SPDX-License-Identifier: MIT
//
// What may be a client's name: printable ASCII without spaces, so that no name can forge a line
// of CLIENT LIST.
#pragma once

#include <algorithm>
#include <string_view>

namespace server {

inline constexpr std::string_view kInvalidClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

inline bool is_valid_client_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace server
