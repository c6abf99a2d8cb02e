// SPDX-License-Identifier: MIT
//
// Base64 with padding, in the alphabet that JSON documents use.
//
// Invariants: only the canonical text of some bytes is read: its length is a multiple of four, the
// bits that padding leaves over are zero, and it holds no line ends.
// Thread safety: pure functions.
// Source: RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace core {

std::string encode_base64(std::string_view bytes);

// nullopt: not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace core
