// SPDX-License-Identifier: MIT
#include "protocol/numbers.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

namespace protocol {

std::optional<double> parse_double(std::string_view text) {
  if (text.empty() || text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r')) {
    return std::nullopt;
  }
  // strtod wants a terminated string; a NUL inside ends it early and fails the length check.
  const std::string terminated(text);
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(terminated.c_str(), &end);
  if (end != terminated.c_str() + terminated.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

}  // namespace protocol
