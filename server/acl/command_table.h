// SPDX-License-Identifier: MIT
//
// CommandTable: what access rules know of the commands: names, containers, categories. Built once
// from the command registry, which stands above this folder.
//
// Invariants: an index here is the index of the registered command. A container stands before its
// subcommands. Renaming a command does not change the name that rules use.
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
  std::string name;           // "get", "config|get"
  std::string_view parent{};  // the container's name; empty when there is none
  uint32_t categories = 0;    // one bit per category, by its place in category_names()
  std::vector<size_t> subcommands{};
};

class CommandTable {
 public:
  // `categories` without their @; they live as long as the table.
  CommandTable(std::vector<CommandEntry> entries, std::vector<std::string_view> categories);
  // Indices and views point into the entries.
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;
  CommandTable(CommandTable&&) = default;

  size_t size() const { return entries_.size(); }
  const CommandEntry& at(size_t index) const { return entries_[index]; }
  // By the name in any case, such as "Config|GET".
  std::optional<size_t> find(std::string_view name) const;
  std::span<const std::string_view> category_names() const { return categories_; }
  // The bit of a category, spelled without its @ and in any case.
  std::optional<uint32_t> category_bit(std::string_view name) const;

 private:
  std::vector<CommandEntry> entries_;
  std::vector<std::string_view> categories_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace server::acl
