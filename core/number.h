// SPDX-License-Identifier: MIT
//
// Numbers as text, read and written the way Redis does, so that a client sees no difference.
//
// Invariants: parsers take the whole text or refuse it; none depends on a terminating zero.
// Thread safety: pure functions. They follow LC_NUMERIC, which the process leaves at "C".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core {

// The one canonical spelling of each integer: no '+', spaces, leading zeros or "-0".
std::optional<int64_t> parse_int64(std::string_view text);

// What strtod takes, hexadecimal and infinities included; no leading space, no NaN, nothing that
// is too large or that vanishes to zero.
std::optional<double> parse_double(std::string_view text);

// The same for INCRBYFLOAT. Texts of 5 KiB and more are refused.
std::optional<long double> parse_long_double(std::string_view text);

// INCRBYFLOAT's spelling: 17 digits after the point, never an exponent, trailing zeros cut.
std::string format_long_double(long double value);

// The spelling of RESP3 doubles: 17 significant digits, "inf", "-inf" or "nan".
std::string format_double(double value);

// An integer's digits without an allocation; the text is a view of the object.
class Decimal {
 public:
  explicit Decimal(int64_t value) : digits_(value) {}
  std::string_view text() const { return {digits_.data(), digits_.size()}; }

 private:
  fmt::format_int digits_;
};

// A size as redis.conf writes it: digits and an optional unit in any case. "k", "m", "g" are
// powers of 1000; "kb", "mb", "gb" powers of 1024; "b" or none is bytes.
std::optional<uint64_t> parse_memory_size(std::string_view text);

}  // namespace core
