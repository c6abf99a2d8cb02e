// SPDX-License-Identifier: MIT
#include "server/base/config/inert_rows.h"

#include <string>

namespace server::inert {
namespace {

template <class Row>
Option inert_option(const Row& row, OptionKind kind) {
  Option option{.name = row.name,
                .kind = kind,
                .default_text = std::string(row.default_text),
                .mutability = row.mutability,
                .inert = true};
  if constexpr (requires { row.alias; }) {
    if (!row.alias.empty()) option.aliases = {row.alias};
  }
  return option;
}

Option inert_number(const NumberRow& row, OptionKind kind) {
  Option option = inert_option(row, kind);
  option.min = row.min;
  option.max = row.max;
  return option;
}

Option inert_enum(const EnumRow& row) {
  Option option = inert_option(row, OptionKind::kEnum);
  option.choices = row.choices;
  return option;
}

Option inert_text(const TextRow& row) {
  const bool several = row.word_count == kSeveralWords;
  Option option = inert_option(row, several ? OptionKind::kList : OptionKind::kString);
  option.multi_argument = several;
  option.sensitive = row.secrecy == kSecret;
  return option;
}

}  // namespace

std::vector<Option> options_of(const Tables& tables) {
  std::vector<Option> options;
  for (const BoolRow& row : tables.bools) options.push_back(inert_option(row, OptionKind::kBool));
  for (const NumberRow& row : tables.integers) {
    options.push_back(inert_number(row, OptionKind::kInteger));
  }
  for (const NumberRow& row : tables.sizes) {
    options.push_back(inert_number(row, OptionKind::kMemory));
  }
  for (const EnumRow& row : tables.enums) options.push_back(inert_enum(row));
  for (const TextRow& row : tables.texts) options.push_back(inert_text(row));
  return options;
}

}  // namespace server::inert
