// SPDX-License-Identifier: MIT
#include "core/printable.h"

#include <fmt/format.h>

#include <iterator>

namespace core {

void append_printable(std::string& out, char c) {
  constexpr char kDelete = 0x7f;
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && c != kDelete) {
    out += c;
    return;
  }
  const size_t letter = std::string_view("\n\r\t\b\a").find(c);
  if (letter == std::string_view::npos) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
  } else {
    out += {'\\', "nrtba"[letter]};
  }
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) append_printable(out, c);
  return out;
}

}  // namespace core
