// SPDX-License-Identifier: MIT
#include "core/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace core {
namespace {

// Redis' limit for the text of a long double: room for 4933 digits, sign, point and fraction.
constexpr size_t kLongDoubleChars = 5 * 1024;

// ERANGE with an infinity or zero means overflow or underflow, so these values are rejected.
// Denormals also cause ERANGE, but they are numbers.
template <class Float>
bool is_usable(Float value, int error) {
  if (std::isnan(value)) return false;
  return error != ERANGE || (!std::isinf(value) && value != 0);
}

// `text` must be zero-terminated. strto… may stop early, for example at a zero byte, and skips
// spaces.
template <class Float>
std::optional<Float> parse_float(const char* text, size_t size,
                                 Float (*convert)(const char*, char**)) {
  if (size == 0 || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const Float value = convert(text, &end);
  if (end != text + size || !is_usable(value, errno)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_double(std::string_view text) {
  // strtod needs a terminating zero, so the text is copied: short texts to the stack, long texts to
  // the heap.
  std::array<char, 128> buffer;
  if (text.size() >= buffer.size()) {
    const std::string copy(text);
    return parse_float<double>(copy.c_str(), copy.size(), std::strtod);
  }
  std::copy(text.begin(), text.end(), buffer.begin());
  buffer[text.size()] = '\0';
  return parse_float<double>(buffer.data(), text.size(), std::strtod);
}

std::optional<long double> parse_long_double(std::string_view text) {
  std::array<char, kLongDoubleChars> buffer;
  if (text.size() >= buffer.size()) return std::nullopt;
  std::copy(text.begin(), text.end(), buffer.begin());
  buffer[text.size()] = '\0';
  return parse_float<long double>(buffer.data(), text.size(), std::strtold);
}

std::string format_long_double(long double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, kLongDoubleChars> buffer;
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.17Lf", value);
  std::string_view text(buffer.data(), static_cast<size_t>(length));
  // The text has a point and 17 digits after it, so the removal of trailing zeros cannot reach the
  // integer part.
  text.remove_suffix(text.size() - 1 - text.find_last_not_of('0'));
  if (text.ends_with('.')) text.remove_suffix(1);
  return std::string(text == "-0" ? "0" : text);
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.17g}", value);
}

}  // namespace core
