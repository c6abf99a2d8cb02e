// SPDX-License-Identifier: MIT
//
// Converts values of options: words to canonical text, and canonical text to lines of a
// configuration file.
//
// Invariants: parse_value() restores a value from its canonical text, and also from the words of
// the lines that write_lines() returns for the value.
// Thread-safe: the functions keep no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/config/option.h"

namespace server {

// Reasons why a value is rejected.
inline constexpr std::string_view kNoBoolean = "argument must be 'yes' or 'no'";
inline constexpr std::string_view kNoMemoryValue = "argument must be a memory value";
inline constexpr std::string_view kNoOctalNumber = "argument couldn't be parsed as an octal number";
inline constexpr std::string_view kNoInteger = "argument couldn't be parsed into an integer";
inline constexpr std::string_view kNoFloat = "argument couldn't be parsed into a float";
inline constexpr std::string_view kWrongArgumentCount = "wrong number of arguments";

// Parses the words of a value. Errors: Redis 7.0's reasons, such as `argument must be 'yes' or
// 'no'`. REQUIRES: words is not empty, and holds one word unless the option takes several.
Parsed<Value> parse_value(const Option& option, Words words, const std::string& current);

// Parses one text, which may hold several words: CONFIG SET and a quoted list in a file pass a list
// as one text.
Parsed<Value> parse_single_text(const Option& option, const std::string& text,
                                const std::string& current);

std::vector<std::string> write_lines(const Option& option, const std::string& text);

// MemoryText: the result of parsing bytes with an optional unit: k = 1000, kb = 1024 and so on up
// to gb. `bytes` is nullopt if the text is malformed or the product exceeds 2^63-1. `overflowed` is
// true only if the product is too big.
struct MemoryText {
  std::optional<int64_t> bytes;
  bool overflowed = false;
};
MemoryText parse_memory(std::string_view text);
// Formats a number of bytes, such as "1gb" for 1073741824. A unit is used only if the result is
// exact.
std::string format_memory(int64_t bytes);

// Parses a finite decimal number. A leading '+' is rejected.
std::optional<double> parse_float(std::string_view text);

Refusal out_of_range(int64_t min, int64_t max);
Refusal unknown_choice(std::string_view choices);
Parsed<Value> parse_ranged_integer(const Option& option, std::string_view text);
Value float_value(double number);

}  // namespace server
