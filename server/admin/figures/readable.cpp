// SPDX-License-Identifier: MIT
#include "server/admin/figures/readable.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <iterator>

namespace server::admin {
namespace {

namespace utf = boost::locale::utf;

bool is_control(utf::code_point code) {
  return code < 0x20 || (0x7F <= code && code < 0xA0);
}

// Returns whether the character ends a line, or changes the order in which the text around it is
// shown. A name with such characters can look like another name.
bool changes_layout(utf::code_point code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (0x2028 <= code && code <= 0x202E) ||
         (0x2066 <= code && code <= 0x2069);
}

// Returns the size in bytes of the first character of the text. Returns 0 if the text does not
// start with valid UTF-8, or starts with a character that must be escaped.
size_t character_size(std::string_view text) {
  const char* end = text.data();
  const utf::code_point code = utf::utf_traits<char>::decode(end, text.data() + text.size());
  if (code == utf::illegal || code == utf::incomplete) return 0;
  if (is_control(code) || changes_layout(code)) return 0;
  return static_cast<size_t>(end - text.data());
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
