// SPDX-License-Identifier: MIT
//
// Splits configuration lines into words, and quotes words.
//
// Invariants: split_words(quote_word(w)) yields exactly {w} for every byte string w.
// Thread-safe: the functions keep no state.
// Source: the comment at the start of redis.conf and the quoting of redis-cli
// (https://redis.io/docs/).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace server {

// Splits at white space. The escapes in "…" are \n \r \t \b \a \xHH, and \c for any other
// character c. The only escape in '…' is \'. Returns nullopt if a quote is not closed, or is
// followed by anything but white space.
std::optional<std::vector<std::string>> split_words(std::string_view line);

// Splits at each single space, as Redis splits a list in one argument. Two spaces in a row give an
// empty word. An empty text gives no words.
std::vector<std::string> split_at_spaces(std::string_view text);

// Returns or appends the word in double quotes, with unprintable characters escaped.
std::string quote_word(std::string_view word);
void append_quoted(std::string& out, std::string_view word);

// Returns the word unchanged if it is unambiguous without quotes, otherwise quoted.
std::string quote_word_if_needed(std::string_view word);

std::string join_words(std::span<const std::string> words);
std::string lower_case(std::string_view text);
std::string_view trim(std::string_view text);

// Returns whether the word contains white space or a zero byte, so that a list of words cannot
// contain it.
bool holds_separator(std::string_view word);

// Replaces line ends by spaces, as Redis does in error replies. A line end inside an error reply
// would end the reply.
std::string without_line_ends(std::string_view text);

}  // namespace server
