// SPDX-License-Identifier: MIT
#include "server/admin/figures/readable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace server::admin {
namespace {

struct Sequence {
  size_t size = 0;  // size in bytes of the UTF-8 sequence; 0: the first byte is invalid
  uint32_t least = 0;
  uint32_t bits = 0;
};

Sequence sequence_of(unsigned char first) {
  if (first < 0x80) return {1, 0, first};
  if ((first & 0xE0) == 0xC0) return {2, 0x80, first & 0x1Fu};
  if ((first & 0xF0) == 0xE0) return {3, 0x800, first & 0x0Fu};
  if ((first & 0xF8) == 0xF0) return {4, 0x10000, first & 0x07u};
  return {};
}

// Returns the size in bytes of the first character of the text. Returns 0 if the text does not
// start with valid UTF-8, or starts with a control character.
size_t character_size(std::string_view text) {
  const auto [size, least, bits] = sequence_of(static_cast<unsigned char>(text[0]));
  if (size == 0 || size > text.size()) return 0;
  uint32_t code = bits;
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return 0;
    code = (code << 6) | (next & 0x3Fu);
  }
  const bool is_surrogate = 0xD800 <= code && code <= 0xDFFF;
  const bool is_control = code < 0x20 || (0x7F <= code && code < 0xA0);
  return code < least || code > 0x10FFFF || is_surrogate || is_control ? 0 : size;
}

// Returns whether the text begins like an escaped byte (\xHH).
bool looks_spelled_out(std::string_view text) {
  const auto is_digit = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
  return text.size() >= 4 && text.starts_with("\\x") && is_digit(text[2]) && is_digit(text[3]);
}

}  // namespace

std::string readable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t size = looks_spelled_out(bytes) ? 0 : character_size(bytes);
    if (size == 0) {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}",
                     static_cast<unsigned>(static_cast<unsigned char>(bytes[0])));
    } else {
      text += bytes.substr(0, size);
    }
    bytes.remove_prefix(std::max<size_t>(size, 1));
  }
  return text;
}

}  // namespace server::admin
