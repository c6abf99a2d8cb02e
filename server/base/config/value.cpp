// SPDX-License-Identifier: MIT
#include "server/base/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>

#include "core/number.h"
#include "server/base/config/words.h"

namespace server {
namespace {

// Returns the number of bytes in a memory unit, such as 1024 for "kb"; nullopt for an unknown unit.
std::optional<int64_t> unit_bytes(const std::string& unit) {
  if (unit.empty() || unit == "b") return 1;
  if (unit == "k") return 1000;
  if (unit == "kb") return int64_t{1} << 10;
  if (unit == "m") return 1000 * 1000;
  if (unit == "mb") return int64_t{1} << 20;
  if (unit == "g") return 1000 * 1000 * 1000;
  if (unit == "gb") return int64_t{1} << 30;
  return std::nullopt;
}

Parsed<Value> parse_bool(const std::string& text) {
  const std::string lower = lower_case(text);
  if (lower == "yes") return Value{lower, 1};
  if (lower == "no") return Value{lower, 0};
  return Refusal{std::string(kNoBoolean)};
}

Parsed<Value> parse_ranged_memory(const Option& option, std::string_view text) {
  const MemoryText memory = parse_memory(text);
  if (memory.overflowed) return out_of_range(option.min, option.max);
  if (!memory.bytes) return Refusal{std::string(kNoMemoryValue)};
  if (*memory.bytes < option.min || *memory.bytes > option.max) {
    return out_of_range(option.min, option.max);
  }
  return Value{std::to_string(*memory.bytes), *memory.bytes};
}

Parsed<Value> parse_octal(const Option& option, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  if (text.empty() || end != text.data() + text.size() || error != std::errc{}) {
    return Refusal{std::string(kNoOctalNumber)};
  }
  if (number < option.min || number > option.max) {
    return Refusal{
        fmt::format("argument must be between {:o} and {:o} inclusive", option.min, option.max)};
  }
  return Value{fmt::format("{:o}", number), number};
}

Parsed<Value> parse_ranged_float(std::string_view text) {
  const auto number = parse_float(text);
  if (!number) return Refusal{std::string(kNoFloat)};
  return float_value(*number);
}

Parsed<Value> parse_enum(const Option& option, const std::string& text) {
  const std::string lower = lower_case(text);
  const auto found = std::find(option.choices.begin(), option.choices.end(), lower);
  if (found == option.choices.end()) {
    return unknown_choice(fmt::format("{}", fmt::join(option.choices, ", ")));
  }
  return Value{lower, found - option.choices.begin()};
}

std::string quote_list(const std::string& text) {
  std::vector<std::string> words = split_at_spaces(text);
  if (words.empty()) words.emplace_back();
  for (std::string& word : words) word = quote_word_if_needed(word);
  return join_words(words);
}

}  // namespace

MemoryText parse_memory(std::string_view text) {
  const size_t digit_count = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = unit_bytes(lower_case(text.substr(digit_count)));
  if (digit_count == 0 || !unit) return {};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digit_count, number);
  if (error != std::errc{} || number > kInt64Max / *unit) return {std::nullopt, true};
  return {number * *unit, false};
}

std::string format_memory(int64_t bytes) {
  struct Unit {
    int64_t bytes;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {
      {int64_t{1} << 30, "gb"}, {int64_t{1} << 20, "mb"}, {int64_t{1} << 10, "kb"}};
  for (const Unit& unit : kUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) {
      return fmt::format("{}{}", bytes / unit.bytes, unit.name);
    }
  }
  return std::to_string(bytes);
}

std::optional<double> parse_float(std::string_view text) {
  if (text.starts_with('+') || text.find_first_of("xX") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto number = core::parse_double(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Refusal out_of_range(int64_t min, int64_t max) {
  return {fmt::format("argument must be between {} and {} inclusive", min, max)};
}

Refusal unknown_choice(std::string_view choices) {
  return {fmt::format("argument(s) must be one of the following: {}", choices)};
}

Parsed<Value> parse_ranged_integer(const Option& option, std::string_view text) {
  const auto number = core::parse_int64(text);
  if (!number) return Refusal{std::string(kNoInteger)};
  if (*number < option.min || *number > option.max) return out_of_range(option.min, option.max);
  return Value{std::to_string(*number), *number};
}

Value float_value(double number) {
  return {fmt::format("{}", number), std::bit_cast<int64_t>(number)};
}

Parsed<Value> parse_value(const Option& option, Words words, const std::string& current) {
  assert(!words.empty());
  assert(words.size() == 1 || option.multi_argument);
  if (option.parser != nullptr) return option.parser(option, words, current);
  switch (option.kind) {
    case OptionKind::kBool:
      return parse_bool(words[0]);
    case OptionKind::kInteger:
      return parse_ranged_integer(option, words[0]);
    case OptionKind::kMemory:
      return parse_ranged_memory(option, words[0]);
    case OptionKind::kOctal:
      return parse_octal(option, words[0]);
    case OptionKind::kFloat:
      return parse_ranged_float(words[0]);
    case OptionKind::kEnum:
      return parse_enum(option, words[0]);
    case OptionKind::kString:
    case OptionKind::kList:
      return Value{join_words(words), 0};
  }
  return Refusal{"option of an unknown kind"};
}

Parsed<Value> parse_single_text(const Option& option, const std::string& text,
                                const std::string& current) {
  std::vector<std::string> words;
  if (option.multi_argument) words = split_at_spaces(text);
  if (words.empty()) words.push_back(text);
  return parse_value(option, words, current);
}

std::vector<std::string> write_lines(const Option& option, const std::string& text) {
  if (option.line_writer != nullptr) return option.line_writer(option, text);
  switch (option.kind) {
    case OptionKind::kMemory:
      return {
          fmt::format("{} {}", option.name, format_memory(core::parse_int64(text).value_or(0)))};
    case OptionKind::kString:
      return {fmt::format("{} {}", option.name, quote_word(text))};
    case OptionKind::kList:
      return {fmt::format("{} {}", option.name, quote_list(text))};
    default:
      return {fmt::format("{} {}", option.name, text)};
  }
}

}  // namespace server
