// SPDX-License-Identifier: MIT
#include "server/config/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace server {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

bool is_space(char c) {
  return kWhiteSpace.find(c) != std::string_view::npos;
}

// The value of a hexadecimal digit, or -1.
int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads one line from left to right; each member function leaves position_ after what it took.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : line_(line) {}

  void skip_spaces() {
    while (!at_end() && is_space(line_[position_])) ++position_;
  }
  bool at_end() const { return position_ == line_.size(); }

  std::optional<std::string> next_word() {
    std::string word;
    while (!at_end() && !is_space(line_[position_])) {
      const char c = line_[position_++];
      if (c != '"' && c != '\'') {
        word += c;
        continue;
      }
      const bool closed = c == '"' ? take_double_quoted(word) : take_single_quoted(word);
      if (!closed) return std::nullopt;
      // A closing quote ends the word, and the line must agree.
      if (!at_end() && !is_space(line_[position_])) return std::nullopt;
    }
    return word;
  }

 private:
  bool take_double_quoted(std::string& word) {
    while (!at_end()) {
      const char c = line_[position_++];
      if (c == '"') return true;
      if (c == '\\' && !at_end()) {
        word += take_escape();
      } else {
        word += c;
      }
    }
    return false;
  }

  char take_escape() {
    if (line_[position_] == 'x' && position_ + 2 < line_.size()) {
      const int high = hex_value(line_[position_ + 1]);
      const int low = hex_value(line_[position_ + 2]);
      if (high >= 0 && low >= 0) {
        position_ += 3;
        return static_cast<char>(high * 16 + low);
      }
    }
    return unescaped(line_[position_++]);
  }

  bool take_single_quoted(std::string& word) {
    while (!at_end()) {
      const char c = line_[position_++];
      if (c == '\'') return true;
      if (c == '\\' && !at_end() && line_[position_] == '\'') {
        word += line_[position_++];
      } else {
        word += c;
      }
    }
    return false;
  }

  std::string_view line_;
  size_t position_ = 0;
};

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '\\':
    case '"':
      out += '\\';
      out += c;
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\a':
      out += "\\a";
      return;
    default:
      break;
  }
  if (c >= 0x20 && c < 0x7f) {
    out += c;
  } else {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
  }
}

}  // namespace

std::optional<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  WordReader reader(line);
  for (reader.skip_spaces(); !reader.at_end(); reader.skip_spaces()) {
    auto word = reader.next_word();
    if (!word) return std::nullopt;
    words.push_back(std::move(*word));
  }
  return words;
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  std::vector<std::string> words;
  if (text.empty()) return words;
  while (true) {
    const size_t space = text.find(' ');
    words.emplace_back(text.substr(0, space));
    if (space == std::string_view::npos) return words;
    text.remove_prefix(space + 1);
  }
}

std::string quote_word(std::string_view word) {
  std::string out = "\"";
  for (const char c : word) append_escaped(out, c);
  return out + '"';
}

std::string quote_word_if_needed(std::string_view word) {
  const bool plain =
      !word.empty() && word.front() != '#' && std::all_of(word.begin(), word.end(), [](char c) {
        return c > 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\';
      });
  return plain ? std::string(word) : quote_word(word);
}

std::string join_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  // Option names are ASCII, whatever the locale says.
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

std::string without_line_ends(std::string_view text) {
  std::string clean(text);
  std::replace(clean.begin(), clean.end(), '\r', ' ');
  std::replace(clean.begin(), clean.end(), '\n', ' ');
  return clean;
}

}  // namespace server
