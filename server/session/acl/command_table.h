// SPDX-License-Identifier: MIT
//
// CommandTable: the properties of commands that access rules need: names, containers and
// categories. Built once from the command registry in dispatch/, which this folder must not
// include.
//
// Invariants: a command has the same index in this table as in the command registry. A container
// precedes its subcommands. Renaming a command does not change the name that rules use.
// Thread safety: constant once built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace server::acl {

struct CommandEntry {
  std::string name;           // full name of the command, such as "get" or "config|get"
  std::string_view parent{};  // name of the container command; empty if not a subcommand
  uint32_t categories = 0;    // bits of the command's categories, in the order of category_names()
  std::vector<size_t> subcommands{};
};

class CommandTable {
 public:
  // `categories` are names without the @. Their texts must outlive the table.
  CommandTable(std::vector<CommandEntry> entries, std::vector<std::string_view> categories);
  // Copies of the table are not needed, so they are forbidden.
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;
  CommandTable(CommandTable&&) = default;

  size_t size() const { return entries_.size(); }
  const CommandEntry& at(size_t index) const { return entries_[index]; }
  // Returns the index of the command with this name, such as "Config|GET". The name is
  // case-insensitive.
  std::optional<size_t> find(std::string_view name) const;
  std::span<const std::string_view> category_names() const { return categories_; }
  // Returns the bit of the category with this name. The name has no @ and is case-insensitive.
  std::optional<uint32_t> category_bit(std::string_view name) const;

 private:
  std::vector<CommandEntry> entries_;
  std::vector<std::string_view> categories_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace server::acl
