// SPDX-License-Identifier: MIT
//
// What may be a client's name: printable ASCII without spaces, so that no name can forge a line
// of CLIENT LIST, and not so long that names would be a store of their own.
#pragma once

#include <algorithm>
#include <string_view>

namespace server {

inline constexpr std::string_view kInvalidClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";
inline constexpr size_t kClientNameBytesMax = 1024;
inline constexpr std::string_view kLongClientName =
    "ERR Client names cannot be longer than 1024 bytes.";
static_assert(kClientNameBytesMax == 1024, "the text names it");

// What is wrong with the name; empty when nothing is.
inline std::string_view client_name_fault(std::string_view name) {
  if (name.size() > kClientNameBytesMax) return kLongClientName;
  const bool is_clean =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
  return is_clean ? std::string_view() : kInvalidClientName;
}

}  // namespace server
