// SPDX-License-Identifier: MIT
//
// Defines the row types of the tables of options that are accepted but have no effect here. A row
// has only the few fields that such an option needs. options_of() creates an Option from each row.
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

// The options that have no effect, in one table for each type of value.
struct Tables {
  std::span<const BoolRow> bools;
  std::span<const NumberRow> integers;
  std::span<const NumberRow> sizes;
  std::span<const EnumRow> enums;
  std::span<const TextRow> texts;
};

std::vector<Option> options_of(const Tables& tables);

}  // namespace server::inert
