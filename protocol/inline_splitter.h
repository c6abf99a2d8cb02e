// SPDX-License-Identifier: MIT
//
// InlineSplitter cuts an inline request ("SET key 'a value'") into its arguments.
//
// Words are separated by white space. "…" knows \n \r \t \b \a \xHH and \c for c itself; '…' knows
// only \'. A closing quote must end its word.
//
// Invariants: words without quotes are views into the line, quoted ones into a scratch buffer;
// both live until the next split() or until the line's bytes change.
// Thread safety: none; one splitter per connection. Not movable, views may point inside.
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

  // False when quotes are not balanced; arguments() is then unspecified.
  bool split(std::string_view line);

  std::span<const std::string_view> arguments() const { return arguments_; }

  // Whether some of the words live in the splitter.
  bool has_quoted() const { return !scratch_.empty(); }

  // Gives back what an unusually long line made it take.
  void release_if_large();

 private:
  bool take_word();
  bool take_double_quoted();
  bool take_single_quoted();
  // After a quote: only white space or the end may follow.
  bool word_ends_here() const;

  std::string_view rest_;
  std::vector<std::string_view> arguments_;
  std::string scratch_;
};

}  // namespace protocol
