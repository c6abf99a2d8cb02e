// SPDX-License-Identifier: MIT
//
// excerpt(): returns a peer's text for the log, truncated and without control characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace server {

inline std::string excerpt(std::string_view text, size_t bytes_max) {
  std::string result(text.substr(0, bytes_max));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

}  // namespace server
