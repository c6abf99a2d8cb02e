// SPDX-License-Identifier: MIT
//
// The rules for client names. Names are printable ASCII without spaces, so that no name can forge a
// line of CLIENT LIST. Their length is limited, so that they cannot be used to store data.
//
// Thread safety: constants and pure functions.
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

// Returns the error in the name; an empty text if the name is valid.
inline std::string_view client_name_fault(std::string_view name) {
  if (name.size() > kClientNameBytesMax) return kLongClientName;
  const bool is_clean =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
  return is_clean ? std::string_view() : kInvalidClientName;
}

}  // namespace server
