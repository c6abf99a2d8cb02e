// SPDX-License-Identifier: MIT
//
// Registry: finds every command by name. It is built once from the rows of all command families.
//
// rename-command applies to clients only. Journals, leaders, files and the admin port use original
// names, so all data stay readable when the renames change.
//
// Invariants: names are unique; every row was checked (`check_row`); entries never move, so a
// `const RegisteredCommand*` stays valid until the process ends. The commands' indices for
// statistics have no gaps.
// Thread-safe: a Registry does not change after its construction.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/name_hash.h"
#include "core/result.h"
#include "server/dispatch/command.h"

namespace server {

// Faults of a command's row.
namespace row_fault {
inline constexpr const char* kNotLowerCase = "name must be lower case";
inline constexpr const char* kLongName = "name is too long";
inline constexpr const char* kSummary = "summary must be a bare sentence";
inline constexpr const char* kNoGroup = "group and since are needed";
inline constexpr const char* kNoHandler = "needs a handler or subcommands";
inline constexpr const char* kReadsAndWrites = "cannot read and write";
inline constexpr const char* kContainerArity =
    "a container has arity -2, or -1 when its bare name does something";
inline constexpr const char* kZeroArity = "arity counts the name, so it is never 0";
inline constexpr const char* kKeysBeforeArguments = "key range must start after the name";
inline constexpr const char* kKeysBeyondArity = "key range is beyond the arity";
inline constexpr const char* kKeysBeforeCount = "counted keys stand behind their count";
inline constexpr const char* kKeysEndEarly = "key range ends before it starts";
inline constexpr const char* kKeysWithoutUse = "key range does not say how the keys are used";
inline constexpr const char* kChangesWithoutWrite = "changes keys but is not marked kWrite";
inline constexpr const char* kKeysNotLocked =
    "syntax has a key that EXEC does not lock: add a key range, kWholeKeyspace or kNoMulti";
}  // namespace row_fault

// Error text for an invalid rename-command. The new name is appended to the text.
inline constexpr std::string_view kInvalidRenameTarget =
    "Target command name already exists or is too long: ";

class Registry {
 public:
  // `families` are the rows of all commands, in the order in which COMMAND lists them. `renames`
  // are (old name, new name) pairs of rename-command; an empty new name removes the command.
  // Errors: an inconsistent row, a duplicate name, a rename of an unknown command, an invalid new
  // name.
  static core::Result<std::unique_ptr<Registry>> create(
      CommandFamilies families, std::span<const std::pair<std::string, std::string>> renames);

  // Finds a command or container by the name that clients use, in upper or lower case. Returns null
  // if there is none.
  const RegisteredCommand* find(std::string_view name) const;
  // Finds a command of a journal, leader, file or HTTP request by its original name. If no command
  // has this original name, searches the names that rename-command has set. The reason is that
  // Redis logs a command under the name that the client sent.
  const RegisteredCommand* find_replayed(std::string_view name) const;
  // Finds the command, or the subcommand of a container. Returns null if either is unknown.
  const RegisteredCommand* find(Arguments args) const;
  const RegisteredCommand* find_replayed(Arguments args) const;
  // Finds a command or subcommand by its full name, such as "get", "client" or "client|list".
  // Returns null if the name is unknown.
  const RegisteredCommand* find_by_full_name(std::string_view full_name) const;
  const RegisteredCommand* find_subcommand(const RegisteredCommand& container,
                                           std::string_view name) const;

  // Returns the top-level commands in table order.
  std::span<const RegisteredCommand* const> commands() const { return top_level_; }
  // Returns the number of commands and subcommands, which is the size of per-command statistics.
  size_t size() const { return all_.size(); }
  const RegisteredCommand& at(size_t index) const { return *all_[index]; }

  static constexpr size_t kNameSizeMax = 48;

 private:
  core::Result<> add(const Command& row, RegisteredCommand* container);

  std::vector<std::unique_ptr<RegisteredCommand>> all_;
  std::vector<std::unique_ptr<const Command>> help_rows_;
  std::vector<const RegisteredCommand*> top_level_;
  using Names = boost::unordered_flat_map<std::string, const RegisteredCommand*, core::NameHash,
                                          std::equal_to<>>;
  static const RegisteredCommand* find_in(const Names& names, std::string_view name);
  const RegisteredCommand* with_subcommand(const RegisteredCommand* command, Arguments args) const;

  Names by_original_name_;
  Names by_client_name_;
};

// Returns an empty text if the row is consistent, otherwise the error in the row.
std::string check_row(const Command& row);

}  // namespace server
