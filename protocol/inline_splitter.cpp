// SPDX-License-Identifier: MIT
#include "protocol/inline_splitter.h"

namespace protocol {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// \v and \f are part of a word: Redis skips them between words but does not end a word at them.
bool ends_word(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char unescaped(char c) {
  const size_t letter = std::string_view("nrtba").find(c);
  return letter == std::string_view::npos ? c : "\n\r\t\b\a"[letter];
}

}  // namespace

bool InlineSplitter::split(std::string_view line) {
  rest_ = line;
  arguments_.clear();
  scratch_.clear();
  for (;;) {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
    if (rest_.empty()) return true;
    if (!take_word()) return false;
  }
}

void InlineSplitter::release_if_large() {
  constexpr size_t kWordsKept = 256;
  constexpr size_t kScratchKeptBytes = 4096;
  if (arguments_.capacity() > kWordsKept) std::vector<std::string_view>().swap(arguments_);
  if (scratch_.capacity() > kScratchKeptBytes) std::string().swap(scratch_);
}

bool InlineSplitter::take_word() {
  size_t plain = 0;
  while (plain < rest_.size() && !ends_word(rest_[plain]) && rest_[plain] != '"' &&
         rest_[plain] != '\'') {
    ++plain;
  }
  const std::string_view prefix = rest_.substr(0, plain);
  rest_.remove_prefix(plain);
  if (rest_.empty() || ends_word(rest_.front())) {
    arguments_.push_back(prefix);
    return true;
  }
  // The buffer gets room for all words at once, so that it never moves while views point into it.
  // All words together are no longer than the line, because unescaping never lengthens a word.
  if (scratch_.empty()) scratch_.reserve(prefix.size() + rest_.size());
  const size_t begin = scratch_.size();
  scratch_.append(prefix);
  const char quote = rest_.front();
  rest_.remove_prefix(1);
  const bool balanced = quote == '"' ? take_double_quoted() : take_single_quoted();
  arguments_.emplace_back(scratch_.data() + begin, scratch_.size() - begin);
  return balanced && word_ends_here();
}

bool InlineSplitter::take_double_quoted() {
  while (!rest_.empty()) {
    const char c = rest_.front();
    if (c == '"') {
      rest_.remove_prefix(1);
      return true;
    }
    if (c != '\\' || rest_.size() == 1) {
      scratch_.push_back(c);
      rest_.remove_prefix(1);
    } else if (rest_.size() >= 4 && rest_[1] == 'x' && hex_digit(rest_[2]) >= 0 &&
               hex_digit(rest_[3]) >= 0) {
      scratch_.push_back(static_cast<char>(hex_digit(rest_[2]) * 16 + hex_digit(rest_[3])));
      rest_.remove_prefix(4);
    } else {
      scratch_.push_back(unescaped(rest_[1]));
      rest_.remove_prefix(2);
    }
  }
  return false;
}

bool InlineSplitter::take_single_quoted() {
  while (!rest_.empty()) {
    if (rest_.front() == '\'') {
      rest_.remove_prefix(1);
      return true;
    }
    if (rest_.starts_with("\\'")) rest_.remove_prefix(1);
    scratch_.push_back(rest_.front());
    rest_.remove_prefix(1);
  }
  return false;
}

bool InlineSplitter::word_ends_here() const {
  return rest_.empty() || is_space(rest_.front());
}

}  // namespace protocol
