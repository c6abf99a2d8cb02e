// SPDX-License-Identifier: MIT
//
// bloomery-docs: prints docs/commands.md, the reference of all commands, from the command table.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "protocol/arguments.h"
#include "server/dispatch/command_reply.h"
#include "server/dispatch/registry.h"

namespace {

using server::RegisteredCommand;

constexpr std::string_view kPreface =
    "# Commands\n"
    "\n"
    "This page is printed by `bloomery-docs` from the command table; edit the rows, not the page.\n"
    "\n"
    "In a usage line lower-case words are values and upper-case ones are literal; `[x]` is\n"
    "optional, `a | b` is a choice, `( )` groups and `...` repeats what stands before it.\n"
    "`name:type` is a value whose type its name does not tell. *Since* is the version of Redis or\n"
    "RedisBloom that first had the command. Replies and errors are theirs. Commands that Bloomery\n"
    "adds have a version of its own.\n";

// Groups in the order of the page, with their headings; others follow under their own name.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"bf", "Bloom filters"},
    {"bloom-ext", "Bloom filters: what Bloomery adds"},
    {"bitmap", "Bitmaps"},
    {"string", "Strings"},
    {"generic", "Keys"},
    {"transactions", "Transactions"},
    {"connection", "Connections"},
    {"server", "Server"},
    {"cluster", "Cluster"},
};

// "`CLIENT KILL ip:port`"
std::string usage(const RegisteredCommand& command) {
  std::string text = protocol::upper_case(command.full_name);
  std::replace(text.begin(), text.end(), '|', ' ');
  if (!command.row->syntax.empty()) text += fmt::format(" {}", command.row->syntax);
  return text;
}

void print_command(const RegisteredCommand& command) {
  std::string categories;
  for (const std::string_view name : server::category_names(*command.row)) {
    categories += fmt::format("{}{}", categories.empty() ? "" : " ", name);
  }
  fmt::print("\n### {}\n\n", usage(command).substr(0, command.full_name.size()));
  fmt::print("```\n{}\n```\n\n{}. {}. *Since {}. {}*\n", usage(command), command.row->summary,
             command.row->complexity, command.row->since, categories);
}

void print_group(const server::Registry& registry, std::string_view group,
                 std::string_view heading) {
  bool printed_heading = false;
  for (const RegisteredCommand* command : registry.commands()) {
    if (command->row->group != group) continue;
    if (!printed_heading) fmt::print("\n## {}\n", heading);
    printed_heading = true;
    if (command->row->handler != nullptr) print_command(*command);
    for (const RegisteredCommand* subcommand : command->subcommands) print_command(*subcommand);
  }
}

bool has_heading(std::string_view group) {
  return std::any_of(std::begin(kGroups), std::end(kGroups),
                     [group](const auto& row) { return row.first == group; });
}

}  // namespace

int main() {
  const auto registry = server::Registry::create({});
  if (!registry) {
    fmt::print(stderr, "{}\n", registry.error().message);
    return EXIT_FAILURE;
  }
  fmt::print("{}", kPreface);
  for (const auto& [group, heading] : kGroups) print_group(**registry, group, heading);
  std::string_view last_group;
  for (const RegisteredCommand* command : (*registry)->commands()) {
    const std::string_view group = command->row->group;
    // Rows of one group stand together in their family.
    if (!has_heading(group) && group != last_group) print_group(**registry, group, group);
    last_group = group;
  }
  return EXIT_SUCCESS;
}
