// SPDX-License-Identifier: MIT
//
// COMMAND: lists the command table for clients.
#include "server/commands/server/introspection_commands.h"

#include <optional>
#include <string>
#include <vector>

#include "core/glob.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/command_reply.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using protocol::equals_ignore_case;

// Returns whether clients can see the command. Renamed and removed commands are hidden.
bool is_visible(const Registry& registry, const RegisteredCommand& command) {
  return registry.find(command.row->name) == &command;
}

std::vector<const RegisteredCommand*> visible_commands(const Registry& registry) {
  std::vector<const RegisteredCommand*> commands;
  for (const RegisteredCommand* command : registry.commands()) {
    if (is_visible(registry, *command)) commands.push_back(command);
  }
  return commands;
}

// Does the same as Registry::find_by_full_name(), for visible commands only.
const RegisteredCommand* find_visible(const Registry& registry, std::string_view name) {
  const RegisteredCommand* command = registry.find_by_full_name(name);
  if (command == nullptr) return nullptr;
  const auto& top = command->container == nullptr ? *command : *command->container;
  return is_visible(registry, top) ? command : nullptr;
}

/* COMMAND */
void command_all(Context& ctx) {
  const auto commands = visible_commands(ctx.services.registry);
  ctx.reply.array(commands.size());
  for (const RegisteredCommand* command : commands) write_command_info(*command, ctx.reply);
}

/* COMMAND COUNT */
void command_count(Context& ctx) {
  ctx.reply.integer(static_cast<int64_t>(visible_commands(ctx.services.registry).size()));
}

/* COMMAND INFO [command-name ...] */
void command_info(Context& ctx) {
  const Arguments names = ctx.args.subspan(2);
  if (names.empty()) return command_all(ctx);
  ctx.reply.array(names.size());
  for (const std::string_view name : names) {
    const RegisteredCommand* command = find_visible(ctx.services.registry, name);
    command == nullptr ? ctx.reply.null() : write_command_info(*command, ctx.reply);
  }
}

/* COMMAND DOCS [command-name ...] */
void command_docs(Context& ctx) {
  const Arguments names = ctx.args.subspan(2);
  std::vector<const RegisteredCommand*> commands;
  for (const std::string_view name : names) {
    const RegisteredCommand* command = find_visible(ctx.services.registry, name);
    if (command != nullptr) commands.push_back(command);
  }
  if (names.empty()) commands = visible_commands(ctx.services.registry);
  ctx.reply.map(commands.size());
  for (const RegisteredCommand* command : commands) write_command_docs(*command, ctx.reply);
}

// The condition of COMMAND LIST FILTERBY.
struct ListFilter {
  enum class By : uint8_t { kNothing, kModule, kCategory, kPattern };
  By by = By::kNothing;
  std::string_view value;
  std::optional<core::Glob> pattern;  // compiled pattern of `value`, for kPattern

  bool accepts(const RegisteredCommand& command) const {
    if (by == By::kModule) return value == "bf" && is_module_command(*command.row);
    if (by == By::kCategory) return has_category(*command.row, value);
    return by == By::kNothing || pattern->matches(command.full_name);
  }
};

/* COMMAND LIST [FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern] */
void command_list(Context& ctx) {
  ListFilter filter;
  protocol::ArgumentCursor cursor(ctx.args.subspan(2));
  if (!cursor.done()) {
    if (!cursor.eat_keyword("filterby")) cursor.fail(kSyntaxError);
    if (cursor.eat_keyword("module"))
      filter.by = ListFilter::By::kModule;
    else if (cursor.eat_keyword("aclcat"))
      filter.by = ListFilter::By::kCategory;
    else if (cursor.eat_keyword("pattern"))
      filter.by = ListFilter::By::kPattern;
    else
      cursor.fail(kSyntaxError);
    filter.value = cursor.next();
    cursor.expect_end();
  }
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  if (filter.by == ListFilter::By::kPattern) {
    filter.pattern.emplace(filter.value, core::LetterCase::kIgnored);
  }
  std::vector<std::string_view> names;
  for (const RegisteredCommand* command : visible_commands(ctx.services.registry)) {
    if (filter.accepts(*command)) names.push_back(command->full_name);
    for (const RegisteredCommand* subcommand : command->subcommands) {
      if (filter.accepts(*subcommand)) names.push_back(subcommand->full_name);
    }
  }
  ctx.reply.array(names.size());
  for (const std::string_view name : names) ctx.reply.bulk(name);
}

struct UsedKey {
  std::string_view name;
  uint16_t use = 0;
};

// Returns the keys that a complete command names. Errors: the error reply.
core::Result<std::vector<UsedKey>> keys_of(const Registry& registry, Arguments args) {
  const RegisteredCommand* command = registry.find(args);
  if (command == nullptr) return core::Error{std::string(kInvalidCommand)};
  const Command& row = *command->row;
  if (row.keys[0].first == 0 || (row.keys[0].use & kNotAKey) != 0) {
    return core::Error{std::string(kNoKeyArguments)};
  }
  if (!command->arity_fits(args.size())) {
    return core::Error{"ERR Invalid number of arguments specified for command"};
  }
  const uint16_t exact_use = row.key_use == nullptr ? uint16_t{0} : row.key_use(args);
  std::vector<UsedKey> keys;
  for_each_key(row, args, [&](size_t index, uint16_t use) {
    keys.push_back({args[index], exact_use != 0 ? exact_use : use});
  });
  if (keys.empty()) return core::Error{std::string(kInvalidKeyArguments)};
  return keys;
}

enum class WithFlags : uint8_t { kNo, kYes };

/* COMMAND GETKEYS command [arg ...] | COMMAND GETKEYSANDFLAGS command [arg ...] */
void command_getkeys(Context& ctx, WithFlags with_flags) {
  const auto keys = keys_of(ctx.services.registry, ctx.args.subspan(2));
  if (!keys) return ctx.reply.error(keys.error().message);
  ctx.reply.array(keys->size());
  for (const UsedKey& key : *keys) {
    if (with_flags == WithFlags::kYes) ctx.reply.array(2);
    ctx.reply.bulk(key.name);
    if (with_flags == WithFlags::kNo) continue;
    const auto names = key_use_names(key.use);
    ctx.reply.set(names.size());
    for (const std::string_view name : names) ctx.reply.simple(name);
  }
}

constexpr Command kIntrospectionSubcommands[] = {
    {.name = "count",
     .arity = 2,
     .summary = "Returns the number of commands",
     .complexity = "O(1)",
     .handler = command_count},
    {.name = "docs",
     .arity = -2,
     .since = "7.0.0",
     .summary = "Returns the documentation of commands",
     .complexity = "O(N) where N is the number of commands to look up",
     .syntax = "[command-name ...]",
     .tips = "nondeterministic_output_order",
     .handler = command_docs},
    {.name = "getkeys",
     .arity = -4,
     .summary = "Returns the keys that a command names",
     .complexity = "O(N) where N is the number of arguments to the command",
     .syntax = "command [arg ...]",
     .handler = calls<command_getkeys, WithFlags::kNo>},
    {.name = "getkeysandflags",
     .arity = -4,
     .since = "7.0.0",
     .summary = "Returns the keys that a command names, with their use",
     .complexity = "O(N) where N is the number of arguments to the command",
     .syntax = "command [arg ...]",
     .handler = calls<command_getkeys, WithFlags::kYes>},
    {.name = "info",
     .arity = -2,
     .summary = "Returns arity, flags and keys of commands",
     .complexity = "O(N) where N is the number of commands to look up",
     .syntax = "[command-name ...]",
     .tips = "nondeterministic_output_order",
     .handler = command_info},
    {.name = "list",
     .arity = -2,
     .since = "7.0.0",
     .summary = "Returns the names of commands",
     .complexity = "O(N) where N is the total number of commands",
     .syntax = "[FILTERBY (MODULE module-name | ACLCAT category | PATTERN pattern)]",
     .tips = "nondeterministic_output_order",
     .handler = command_list},
};

const Command kIntrospectionRows[] = {
    {.name = "command",
     .arity = -1,
     .summary = "Describes all commands, or runs a subcommand",
     .complexity = "O(N) where N is the total number of commands",
     .tips = "nondeterministic_output_order",
     .handler = command_all,
     .subcommands = kIntrospectionSubcommands},
};

}  // namespace

const CommandFamily kIntrospectionCommands{
    {.flags = kLoading | kStale, .categories = kConnection, .group = "server", .since = "2.8.13"},
    kIntrospectionRows};

}  // namespace server
