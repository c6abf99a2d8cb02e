// SPDX-License-Identifier: MIT
//
// The words of a configuration line and how they are quoted.
//
// Invariants: split_words(quote_word(w)) yields exactly {w} for every byte string w.
// Thread safety: free functions without shared state.
// Source: redis.conf's opening comment and the quoting of redis-cli (https://redis.io/docs/).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace server {

// Splits on white space; "…" knows \n \r \t \b \a \xHH and \c for any other c, '…' knows only \'.
// Empty when a quote is left open or is followed by anything but white space.
std::optional<std::vector<std::string>> split_words(std::string_view line);

// Splits at each single space, which is how Redis cuts a list given as one argument: two spaces
// in a row make an empty word. An empty text has no words.
std::vector<std::string> split_at_spaces(std::string_view text);

// The word between double quotes, with everything unprintable escaped.
std::string quote_word(std::string_view word);

// The word as it is when no reader could misunderstand it, else quoted.
std::string quote_word_if_needed(std::string_view word);

std::string join_words(const std::vector<std::string>& words);
std::string lower_case(std::string_view text);
std::string_view trim(std::string_view text);

// True of a word with white space or a zero byte, which a list of words could not hold.
bool holds_separator(std::string_view word);

// The part of a client's word that a message may echo. Line ends would break the reply, so they
// become spaces, as in Redis.
std::string without_line_ends(std::string_view text);

}  // namespace server
