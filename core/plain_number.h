// SPDX-License-Identifier: MIT
//
// Parses counts as people write them, if the text is unambiguous. For a rejected rate or count, a
// hint says how to write the number.
//
// Thread safety: pure functions.
// Source: docs/compatibility.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core {

// Parses a count. Accepts the texts of parse_int64(), and 1e6, 1_000_000, and 10k, 10m, 10g (powers
// of 1000, as in the configuration file). Letters may be upper or lower case. The number must be
// whole.
std::optional<int64_t> parse_count(std::string_view text);

// Returns how to write a rejected rate, for example "'0.1%' is written 0.001". Returns an empty
// text if it is not clear which number was meant, or if that number is not between 0 and 1.
std::string rate_hint(std::string_view text);
// Returns how to write a rejected count, for example "'1,000,000' is written 1000000".
std::string count_hint(std::string_view text);

}  // namespace core
