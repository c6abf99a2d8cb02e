// SPDX-License-Identifier: MIT
//
// Numbers as people write them: counts that can only mean one thing are read, and a rate or count
// that is refused is answered with the spelling to use.
//
// Thread safety: pure functions.
// Source: docs/compatibility.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core {

// What parse_int64 reads, and 1e6, 1_000_000, and 10k, 10m, 10g (thousands, as in the
// configuration file) in any case; whole numbers only.
std::optional<int64_t> parse_count(std::string_view text);

// "'0.1%' is written 0.001"; empty when no spelling is more likely meant than others.
std::string rate_hint(std::string_view text);
// "'1,000,000' is written 1000000"
std::string count_hint(std::string_view text);

}  // namespace core
