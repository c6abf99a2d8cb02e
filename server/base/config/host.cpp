// SPDX-License-Identifier: MIT
#include "server/base/config/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/number.h"
#include "server/base/config/value.h"

namespace server {
namespace {

constexpr size_t kHostBytesMax = 255;

}  // namespace

bool is_host_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view(".:-_%").find(c) != std::string_view::npos;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kHostBytesMax && text.front() != '-' &&
         std::ranges::all_of(text, is_host_character);
}

std::string host_and_port(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::optional<uint16_t> parse_port(std::string_view text) {
  const auto number = core::parse_int64(text);
  if (!number || *number < 0 || *number > std::numeric_limits<uint16_t>::max()) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

}  // namespace server
