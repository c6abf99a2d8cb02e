// SPDX-License-Identifier: MIT
//
// Numbers as text, parsed and formatted as by Redis, so that clients see no difference from Redis.
//
// Invariants: parsers accept or reject the whole text; none needs a terminating zero.
// Thread safety: pure functions. They depend on LC_NUMERIC, which the process leaves at "C".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace core {

// Accepts only the canonical text of an integer: no '+', spaces, leading zeros or "-0". As in
// Redis, this rule applies to integer arguments and to the lengths in a RESP message.
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

// Accepts the texts of strtod, including hexadecimal and infinities. Rejects leading spaces, NaN,
// overflow and underflow to zero.
std::optional<double> parse_double(std::string_view text);

// Parses a number for INCRBYFLOAT by the rules of parse_double(). Rejects texts of 5 KiB and more.
std::optional<long double> parse_long_double(std::string_view text);

// Formats a result of INCRBYFLOAT: 17 digits after the point, no exponent, trailing zeros removed.
std::string format_long_double(long double value);

// The format of RESP3 doubles: 17 significant digits, "inf", "-inf" or "nan".
std::string format_double(double value);

// Formats an integer without an allocation. The text is a view of the object.
class Decimal {
 public:
  explicit Decimal(int64_t value) : digits_(value) {}
  std::string_view text() const { return {digits_.data(), digits_.size()}; }

 private:
  fmt::format_int digits_;
};

}  // namespace core
