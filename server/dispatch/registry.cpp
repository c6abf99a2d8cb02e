// SPDX-License-Identifier: MIT
#include "server/dispatch/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/dispatch/help.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/syntax.h"

namespace server {
namespace {

bool is_lower_case(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || c <= ' ' || c > '~' || c == '|';
  });
}

// Writes the name in lower case into `buffer`. Returns an empty view if the name is longer than the
// buffer, and so longer than any name of a command.
std::string_view lower_case_in(std::string_view name, std::span<char> buffer) {
  if (name.size() > buffer.size()) return {};
  std::transform(name.begin(), name.end(), buffer.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return {buffer.data(), name.size()};
}

std::string check_keys(const Command& row) {
  const int smallest_count = row.arity < 0 ? -row.arity : row.arity;
  for (const KeyRange& range : row.keys) {
    if (range.first == 0) continue;
    if (range.first < 0 || range.step < 1) return row_fault::kKeysBeforeArguments;
    if (range.first >= smallest_count && row.arity > 0) return row_fault::kKeysBeyondArity;
    if (range.count_at < 0 || (range.count_at > 0 && range.first <= range.count_at)) {
      return row_fault::kKeysBeforeCount;
    }
    if (range.last > 0 && range.last < range.first) return row_fault::kKeysEndEarly;
    if (range.use == 0) return row_fault::kKeysWithoutUse;
    const bool changes = (range.use & (kKeyRw | kKeyOw | kKeyRm)) != 0;
    if (changes && (row.flags & kWrite) == 0) return row_fault::kChangesWithoutWrite;
  }
  return "";
}

// Returns whether one of the arguments is a key. `name:string` is none, as in CLUSTER KEYSLOT.
bool has_key(const std::vector<Syntax>& arguments) {
  return std::ranges::any_of(arguments, [](const Syntax& argument) {
    return argument.kind == Syntax::Kind::kKey || has_key(argument.parts);
  });
}

}  // namespace

std::string check_row(const Command& row) {
  if (!is_lower_case(row.name)) return row_fault::kNotLowerCase;
  if (row.name.size() > Registry::kNameSizeMax) return row_fault::kLongName;
  if (row.summary.empty() || row.summary.back() == '.') return row_fault::kSummary;
  if (row.group.empty() || row.since.empty()) return row_fault::kNoGroup;
  if (row.handler == nullptr && row.subcommands.empty()) return row_fault::kNoHandler;
  if ((row.flags & kWrite) != 0 && (row.flags & kReadOnly) != 0) return row_fault::kReadsAndWrites;
  if (!row.subcommands.empty() && row.arity != (row.handler == nullptr ? -2 : -1)) {
    return row_fault::kContainerArity;
  }
  if (row.arity == 0) return row_fault::kZeroArity;
  if (row.handler != nullptr) {
    const auto syntax = parse_syntax(row.syntax);
    if (!syntax) return "syntax: " + syntax.error().message;
    const bool is_locked_by_exec =
        row.keys[0].first != 0 || (row.flags & (kWholeKeyspace | kNoMulti)) != 0;
    if (!is_locked_by_exec && has_key(*syntax)) return row_fault::kKeysNotLocked;
  }
  return check_keys(row);
}

core::Result<std::unique_ptr<Registry>> Registry::create(
    CommandFamilies families, std::span<const std::pair<std::string, std::string>> renames) {
  auto registry = std::make_unique<Registry>();
  for (const auto family : families) {
    for (const Command& row : family) {
      if (auto added = registry->add(row, nullptr); !added) return added.error();
    }
  }
  registry->by_client_name_ = registry->by_original_name_;
  for (const auto& [old_name, new_name] : renames) {
    const RegisteredCommand* command = registry->find(old_name);
    if (command == nullptr) {
      return core::Error{fmt::format("No such command in rename-command: '{}'", old_name)};
    }
    std::array<char, kNameSizeMax> buffer{};
    registry->by_client_name_.erase(std::string(lower_case_in(old_name, buffer)));
    if (new_name.empty()) continue;
    const std::string_view target = lower_case_in(new_name, buffer);
    if (target.empty() || !registry->by_client_name_.emplace(target, command).second) {
      return core::Error{std::string(kInvalidRenameTarget) + new_name};
    }
  }
  return registry;
}

core::Result<> Registry::add(const Command& row, RegisteredCommand* container) {
  auto command = std::make_unique<RegisteredCommand>();
  command->row = &row;
  command->container = container;
  command->full_name = container == nullptr ? std::string(row.name)
                                            : fmt::format("{}|{}", container->row->name, row.name);
  command->index = all_.size();
  command->needs = needs_of(row);
  if (const std::string fault = check_row(row); !fault.empty()) {
    return core::Error{fmt::format("command table: '{}': {}", command->full_name, fault)};
  }
  RegisteredCommand* added = command.get();
  all_.push_back(std::move(command));
  if (!by_original_name_.emplace(added->full_name, added).second) {
    return core::Error{fmt::format("command table: '{}' occurs twice", added->full_name)};
  }
  if (container == nullptr) {
    top_level_.push_back(added);
  } else {
    container->subcommands.push_back(added);
  }
  for (const Command& subcommand : row.subcommands) {
    if (auto result = add(subcommand, added); !result) return result;
  }
  const bool has_help =
      std::ranges::find(row.subcommands, "help", &Command::name) != row.subcommands.end();
  if (!row.subcommands.empty() && !has_help) {
    help_rows_.push_back(std::make_unique<const Command>(help_row(row)));
    return add(*help_rows_.back(), added);
  }
  return {};
}

const RegisteredCommand* Registry::find(std::string_view name) const {
  return find_in(by_client_name_, name);
}

const RegisteredCommand* Registry::find_replayed(std::string_view name) const {
  const RegisteredCommand* const original = find_in(by_original_name_, name);
  return original != nullptr ? original : find(name);
}

const RegisteredCommand* Registry::find_in(const Names& names, std::string_view name) {
  std::array<char, kNameSizeMax> buffer;
  const std::string_view lowered = lower_case_in(name, buffer);
  // A name with '|', such as "client|list", is rejected although the table contains it. A client
  // must send the command and its subcommand as two words.
  if (lowered.empty() || lowered.find('|') != std::string_view::npos) return nullptr;
  const auto found = names.find(lowered);
  return found == names.end() ? nullptr : found->second;
}

const RegisteredCommand* Registry::find(Arguments args) const {
  return args.empty() ? nullptr : with_subcommand(find(args[0]), args);
}

const RegisteredCommand* Registry::find_replayed(Arguments args) const {
  return args.empty() ? nullptr : with_subcommand(find_replayed(args[0]), args);
}

const RegisteredCommand* Registry::with_subcommand(const RegisteredCommand* command,
                                                   Arguments args) const {
  if (command == nullptr || command->subcommands.empty() || args.size() < 2) return command;
  return find_subcommand(*command, args[1]);
}

const RegisteredCommand* Registry::find_by_full_name(std::string_view full_name) const {
  const size_t bar = full_name.find('|');
  const RegisteredCommand* command = find(full_name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  return find_subcommand(*command, full_name.substr(bar + 1));
}

const RegisteredCommand* Registry::find_subcommand(const RegisteredCommand& container,
                                                   std::string_view name) const {
  std::array<char, kNameSizeMax> buffer;
  const std::string_view lowered = lower_case_in(name, buffer);
  for (const RegisteredCommand* subcommand : container.subcommands) {
    if (subcommand->row->name == lowered) return subcommand;
  }
  return nullptr;
}

}  // namespace server
