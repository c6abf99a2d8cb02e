// SPDX-License-Identifier: MIT
#include "server/base/config/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <iterator>

#include "core/printable.h"
#include "protocol/inline_splitter.h"

namespace server {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

// Returns whether quote_word() leaves the character unchanged.
bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
  if (c == '\\' || c == '"') {
    out += '\\';
    out += c;
  } else if (static_cast<unsigned char>(c) > 0x7f) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
  } else {
    core::append_printable(out, c);
  }
}

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view line) {
  protocol::InlineSplitter splitter;
  if (!splitter.split(line)) return std::nullopt;
  const auto words = splitter.arguments();
  return std::vector<std::string>(words.begin(), words.end());
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> words;
  if (!text.empty()) boost::algorithm::split(words, text, boost::algorithm::is_any_of(" "));
  return words;
}

void append_quoted(std::string& out, std::string_view word) {
  out += '"';
  for (auto next = word.begin(); next != word.end();) {
    const auto special = std::find_if_not(next, word.end(), is_plain);
    out.append(next, special);
    next = special;
    if (next != word.end()) append_escaped(out, *next++);
  }
  out += '"';
}

std::string quote_word(std::string_view word) {
  std::string out;
  append_quoted(out, word);
  return out;
}

std::string quote_word_if_needed(std::string_view word) {
  const bool plain = !word.empty() && word.front() != '#' && std::ranges::all_of(word, [](char c) {
    return is_plain(c) && c != ' ' && c != '\'';
  });
  return plain ? std::string(word) : quote_word(word);
}

std::string join_words(std::span<const std::string> words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  // Converts only ASCII letters to lower case, whatever the locale, because option names are ASCII.
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

bool holds_separator(std::string_view word) {
  return word.find('\0') != std::string_view::npos ||
         word.find_first_of(kWhiteSpace) != std::string_view::npos;
}

std::string without_line_ends(std::string_view text) {
  std::string clean(text);
  std::ranges::replace_if(
      clean, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return clean;
}

}  // namespace server
