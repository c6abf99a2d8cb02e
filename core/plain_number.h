// SPDX-License-Identifier: MIT
//
// Numbers as people write them. Unambiguous counts are accepted. For a rejected rate or count the
// error says how to write it.
//
// Thread safety: pure functions.
// Source: docs/compatibility.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core {

// Parses a count. Accepts the texts of parse_int64(), and 1e6, 1_000_000, and 10k, 10m, 10g
// (thousands, as in the configuration file) in any case. Whole numbers only.
std::optional<int64_t> parse_count(std::string_view text);

// Example: "'0.1%' is written 0.001". Empty if no spelling is the obvious one.
std::string rate_hint(std::string_view text);
// Example: "'1,000,000' is written 1000000".
std::string count_hint(std::string_view text);

}  // namespace core
