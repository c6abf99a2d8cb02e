// SPDX-License-Identifier: MIT
//
// Defines rows for options of other servers that have no effect here. The rows fit into short
// tables, from which options_of() creates Options.
//
// Thread-safe: the tables are constants, and the functions keep no state.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "server/base/config/option.h"

namespace server::inert {

inline constexpr Mutability kFree = Mutability::kMutable;
inline constexpr Mutability kFixed = Mutability::kImmutable;

struct BoolRow {
  std::string_view name, alias, default_text;
  Mutability mutability;
};

struct NumberRow {
  std::string_view name, alias, default_text;
  int64_t min, max;
  Mutability mutability;
};

struct EnumRow {
  std::string_view name, default_text;
  std::vector<std::string_view> choices;
  Mutability mutability;
};

enum class WordCount : uint8_t { kOneWord, kSeveralWords };
enum class Secrecy : uint8_t { kPublic, kSecret };
using enum WordCount;
using enum Secrecy;

struct TextRow {
  std::string_view name, alias, default_text;
  Mutability mutability;
  WordCount word_count;
  Secrecy secrecy;
};

// The tables of the options of one server, by the kind of option.
struct Tables {
  std::span<const BoolRow> bools;
  std::span<const NumberRow> integers;
  std::span<const NumberRow> sizes;
  std::span<const EnumRow> enums;
  std::span<const TextRow> texts;
};

std::vector<Option> options_of(const Tables& tables);

}  // namespace server::inert
