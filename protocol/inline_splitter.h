// SPDX-License-Identifier: MIT
//
// InlineSplitter splits an inline request ("SET key 'a value'") into its arguments.
//
// Words are separated by white space. "…" supports the escapes \n \r \t \b \a \xHH, and \c for any
// other character c; '…' supports only \'. A closing quote must end its word.
//
// Invariants: words without quotes are views of the line, quoted words are views of a scratch
// buffer. Both are valid until the next split() or until the line's bytes change.
// Thread safety: none; one splitter per connection. Not movable, because views may point into it.
// Source: the quoting rules of redis-cli and Redis' inline requests.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace protocol {

class InlineSplitter {
 public:
  InlineSplitter() = default;
  InlineSplitter(const InlineSplitter&) = delete;
  InlineSplitter& operator=(const InlineSplitter&) = delete;

  // Splits the line. Returns false if quotes are not balanced; arguments() is then unspecified.
  bool split(std::string_view line);

  std::span<const std::string_view> arguments() const { return arguments_; }

  // Returns whether some words are views of the splitter's own buffer.
  bool has_quoted() const { return !scratch_.empty(); }

  // Frees the memory of an unusually long line.
  void release_if_large();

 private:
  bool take_word();
  bool take_double_quoted();
  bool take_single_quoted();
  // Returns whether white space or the end of the line follows a closing quote.
  bool word_ends_here() const;

  std::string_view rest_;
  std::vector<std::string_view> arguments_;
  std::string scratch_;
};

}  // namespace protocol
