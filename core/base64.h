// SPDX-License-Identifier: MIT
//
// Base64 with padding, in the standard alphabet, which ends with '+' and '/'.
//
// Invariants: only canonical text is decoded. Its length is a multiple of four, unused bits before
// the padding are zero, and it contains no line ends.
// Thread safety: pure functions.
// Source: RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace core {

std::string encode_base64(std::string_view bytes);

// Returns nullopt if `text` is not valid base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace core
