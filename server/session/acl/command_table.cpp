// SPDX-License-Identifier: MIT
#include "server/session/acl/command_table.h"

#include <utility>

#include "protocol/arguments.h"
#include "server/base/config/words.h"

namespace server::acl {

CommandTable::CommandTable(std::vector<CommandEntry> entries,
                           std::vector<std::string_view> categories)
    : entries_(std::move(entries)), categories_(std::move(categories)) {
  for (size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].name, i);
}

std::optional<size_t> CommandTable::find(std::string_view name) const {
  const auto found = by_name_.find(lower_case(name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<uint32_t> CommandTable::category_bit(std::string_view name) const {
  for (size_t i = 0; i < categories_.size(); ++i) {
    if (protocol::equals_ignore_case(name, categories_[i])) return uint32_t{1} << i;
  }
  return std::nullopt;
}

}  // namespace server::acl
