// SPDX-License-Identifier: MIT
//
// Syntax: the arguments of a command as a tree, parsed from the one-line notation of its row.
//
// In the notation (also shown in docs/commands.md), a lower-case word is a value, and an upper-case
// word is a literal. `EX seconds` is a literal with its value; [x] is optional; a | b is a choice;
// `x ...` may repeat; (a b) groups. `name:type` gives a value another type than its name implies.
//
// Thread safety: the functions may be called from any thread, because they share no state.
// Source: the argument types of https://redis.io/docs/latest/develop/reference/command-arguments/
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace server {

struct Syntax {
  enum class Kind { kString, kInteger, kDouble, kKey, kPattern, kUnixTime, kToken, kOneOf, kBlock };
  Kind kind = Kind::kString;
  std::string name;
  std::string token;  // the word of a literal; empty for other kinds
  bool optional = false;
  bool multiple = false;
  std::vector<Syntax> parts;  // the parts of a kOneOf or kBlock
};

// Returns the name that COMMAND DOCS uses for this kind of argument.
std::string_view kind_name(Syntax::Kind kind);

// Parses the notation. Errors: unbalanced brackets, an empty choice, nothing to repeat, an unknown
// type.
core::Result<std::vector<Syntax>> parse_syntax(std::string_view notation);

}  // namespace server
