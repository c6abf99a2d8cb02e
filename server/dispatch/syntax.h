// SPDX-License-Identifier: MIT
//
// Syntax: the arguments of a command as a tree, read from the one-line notation of its row.
//
// The notation (also shown in docs/commands.md): a lower-case word is a value, an upper-case one
// a literal word; `EX seconds` is a literal with its value; [x] is optional; a | b is a choice;
// `x ...` may repeat; (a b) groups. `name:type` gives a value a type other than the one that its
// name implies.
//
// Thread safety: values, no shared state.
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
  std::string token;  // the literal word, empty when there is none
  bool optional = false;
  bool multiple = false;
  std::vector<Syntax> parts;  // of kOneOf and kBlock
};

// The name of a kind in COMMAND DOCS.
std::string_view kind_name(Syntax::Kind kind);

// Errors: brackets that do not match, an empty choice.
core::Result<std::vector<Syntax>> parse_syntax(std::string_view notation);

}  // namespace server
