// SPDX-License-Identifier: MIT
#include "core/plain_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number.h"

namespace core {
namespace {

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// Returns the digits of a number that has separators between groups of three digits, as in
// "1,000,000"; empty for any other text.
std::string without_separators(std::string_view text, char separator) {
  std::string digits;
  size_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_digit(text[i])) {
      digits += text[i];
      ++group;
    } else {
      const bool is_first = digits.size() == group;
      const bool fits = is_first ? group >= 1 && group <= 3 : group == 3;
      if (text[i] != separator || !fits) return {};
      group = 0;
    }
  }
  return group == 3 && digits.size() > group ? digits : std::string{};
}

// Parses a decimal without sign and exponent. Rejects long texts, because the error message repeats
// the text.
std::optional<double> parse_plain(std::string_view text) {
  constexpr size_t kLongest = 20;
  const bool fits = !text.empty() && text.size() <= kLongest &&
                    std::all_of(text.begin(), text.end(),
                                [](char letter) { return is_digit(letter) || letter == '.'; });
  return fits ? parse_double(text) : std::nullopt;
}

std::optional<int64_t> whole(double number) {
  constexpr double kExact = 9007199254740992;  // 2^53: above it a double cannot hold every integer
  if (!(number >= 0 && number <= kExact) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

double thousands(char suffix) {
  constexpr double kFactors[] = {1e3, 1e6, 1e9};
  const size_t letter = std::string_view("kKmMgG").find(suffix);
  return letter == std::string_view::npos ? 0 : kFactors[letter / 2];
}

std::string hint(std::string_view text, double number) {
  const bool is_rate = number > 0 && number < 1;
  return is_rate ? fmt::format("'{}' is written {:.12g}", text, number) : std::string{};
}

}  // namespace

std::optional<int64_t> parse_count(std::string_view text) {
  if (const auto number = parse_int64(text)) return number;
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  if (const auto digits = without_separators(text, '_'); !digits.empty()) {
    return parse_int64(digits);
  }
  if (const double factor = thousands(text.back()); factor != 0) {
    const auto number = parse_plain(text.substr(0, text.size() - 1));
    return number ? whole(*number * factor) : std::nullopt;
  }
  const size_t exponent = text.find_first_of("eE");
  if (exponent == std::string_view::npos || !parse_plain(text.substr(0, exponent))) {
    return std::nullopt;
  }
  const auto number = parse_double(text);
  return number ? whole(*number) : std::nullopt;
}

std::string rate_hint(std::string_view text) {
  if (text.ends_with('%')) {
    const auto percent = parse_plain(text.substr(0, text.size() - 1));
    return percent ? hint(text, *percent / 100) : std::string{};
  }
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    const auto above = parse_plain(text.substr(0, slash));
    const auto below = parse_plain(text.substr(slash + 1));
    return above && below && *below > 0 ? hint(text, *above / *below) : std::string{};
  }
  std::string point(text.substr(0, 24));
  std::replace(point.begin(), point.end(), ',', '.');
  const auto number = point == text ? std::nullopt : parse_plain(point);
  return number ? hint(text, *number) : std::string{};
}

std::string count_hint(std::string_view text) {
  for (const char separator : {',', '.', '\'', ' '}) {
    const auto number = parse_int64(without_separators(text, separator));
    if (number) return fmt::format("'{}' is written {}", text, *number);
  }
  return {};
}

}  // namespace core
