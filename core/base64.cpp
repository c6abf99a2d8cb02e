// SPDX-License-Identifier: MIT
#include "core/base64.h"

#include <array>
#include <cstdint>

namespace core {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    std::string_view group = text.substr(i, 4);
    if (i + 4 == text.size()) {
      for (int padding = 0; padding < 2 && group.back() == '='; ++padding) group.remove_suffix(1);
    }
    uint32_t bits = 0;
    for (const char digit : group) {
      const uint8_t value = kValues[static_cast<unsigned char>(digit)];
      if (value == kNoDigit) return std::nullopt;
      bits = bits << 6 | value;
    }
    bits <<= 6 * (4 - group.size());
    const size_t count = group.size() - 1;
    for (size_t k = 0; k < count; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k) & 0xFF);
    if ((bits & ((1U << (8 * (3 - count))) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace core
