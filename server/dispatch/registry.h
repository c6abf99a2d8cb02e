// SPDX-License-Identifier: MIT
//
// Registry: every command by name, built once from the families' rows.
//
// rename-command is for clients. Journals, leaders and files hold original names, so a change of
// the renames leaves all data readable.
//
// Invariants: names are unique; every row was checked (`check_row`); entries never move, so a
// `const RegisteredCommand*` stays valid for the life of the process. Indices are dense.
// Thread safety: immutable after construction.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/dispatch/command.h"

namespace server {

class Registry {
 public:
  // `renames` are (old name, new name) pairs of rename-command; an empty new name removes.
  // Errors: a row that contradicts itself, a duplicate name, a rename of an unknown command.
  static core::Result<std::unique_ptr<Registry>> create(
      std::span<const std::pair<std::string, std::string>> renames);

  // A command or container by the name that clients use, in any case; null when there is none.
  const RegisteredCommand* find(std::string_view name) const;
  // The same by the original name, for journals, leaders and files. Redis logs the words of its
  // clients, so a name that is no original one is looked up as a client's.
  const RegisteredCommand* find_replayed(std::string_view name) const;
  // Follows a container to its subcommand; null when either is unknown.
  const RegisteredCommand* find(Arguments args) const;
  // "get", "client", or "client|list" in one word; null when it is unknown.
  const RegisteredCommand* find_by_full_name(std::string_view full_name) const;
  const RegisteredCommand* find_subcommand(const RegisteredCommand& container,
                                           std::string_view name) const;

  // Top-level commands in table order.
  std::span<const RegisteredCommand* const> commands() const { return top_level_; }
  // Commands and subcommands; the size of per-command statistics.
  size_t size() const { return all_.size(); }
  const RegisteredCommand& at(size_t index) const { return *all_[index]; }

  static constexpr size_t kNameSizeMax = 48;

 private:
  core::Result<> add(const Command& row, const RegisteredCommand* container);

  std::vector<std::unique_ptr<RegisteredCommand>> all_;
  std::vector<std::unique_ptr<const Command>> help_rows_;
  std::vector<const RegisteredCommand*> top_level_;
  // Found by view, without making a string.
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  using Names =
      boost::unordered_flat_map<std::string, const RegisteredCommand*, NameHash, std::equal_to<>>;
  static const RegisteredCommand* find_in(const Names& names, std::string_view name);

  Names by_original_name_;
  Names by_client_name_;
};

// Empty when the row is sound; otherwise what is wrong with it.
std::string check_row(const Command& row);

}  // namespace server
