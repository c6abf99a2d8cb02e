// SPDX-License-Identifier: MIT
//
// Numbers as clients and servers spell them.
//
// Invariants: one integer has one spelling: no '+', no leading zeros, no spaces, no "-0". The
// same rule serves announced lengths and arguments, as in Redis.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace protocol {

inline std::optional<int64_t> parse_int64(std::string_view text) {
  constexpr size_t kDigitsMax = std::numeric_limits<int64_t>::digits10 + 1;
  if (text == "0") return 0;
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > kDigitsMax || text.front() == '0') return std::nullopt;
  // Nineteen digits always fit an unsigned 64-bit number, so this loop cannot overflow.
  uint64_t magnitude = 0;
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit > 9) return std::nullopt;
    magnitude = magnitude * 10 + digit;
  }
  const uint64_t bound = uint64_t{std::numeric_limits<int64_t>::max()} + (negative ? 1 : 0);
  if (magnitude > bound) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

// Accepts what strtod does ("1e3", "0x10", "+1", "inf"), but no leading space, no NaN, and
// nothing too large or too small for a double.
std::optional<double> parse_double(std::string_view text);

}  // namespace protocol
