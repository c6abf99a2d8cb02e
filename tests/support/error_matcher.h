// SPDX-License-Identifier: MIT
//
// is_error: matches an error by its code and by a noun of its text, so that the wording may change.
//
//   EXPECT_THAT(run({"LCS", "a", "b", "LEN", "IDX"}), is_error("ERR", "IDX"));
//
// encoded_error: the encoded form of an error, for tests without CommandTest.
//
// Thread safety: may be called from any thread.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <string_view>

// Accepts the text of an error, and the encoded reply.
MATCHER_P2(is_error, code, noun, "") {
  std::string_view text = arg;
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.starts_with(std::string(code) + ' ') && text.find(noun) != std::string_view::npos;
}

inline std::string encoded_error(std::string_view text) {
  return "-" + std::string(text) + "\r\n";
}
