// SPDX-License-Identifier: MIT
//
// excerpt(): returns a peer's text for the log, truncated and without control characters.
//
// Thread safety: a pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace server {

inline std::string excerpt(std::string_view text, size_t bytes_max) {
  std::string result(text.substr(0, bytes_max));
  std::ranges::replace_if(
      result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

}  // namespace server
