// SPDX-License-Identifier: MIT
//
// bloomery-docs: prints two pages of the documentation.
//
// Without arguments the program prints docs/commands.md, the reference of all commands, from the
// command table and docs/parts/commands.md. The file in docs/parts/ contains examples and explains
// options. `bloomery-docs configuration conf/bloomery.conf` prints docs/configuration.md from the
// option table and the sample file.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "protocol/arguments.h"
#include "server/commands/families.h"
#include "server/dispatch/command_reply.h"
#include "server/dispatch/registry.h"
#include "server/tools/configuration_page.h"
#include "server/tools/sample_file.h"

namespace {

using server::RegisteredCommand;

constexpr std::string_view kPreface =
    "# Commands\n"
    "\n"
    "For developers of clients and applications: each command with its usage, replies, errors\n"
    "and an example. In a usage line upper-case words are literal. Lower-case words are values,\n"
    "or the literal choices after `LAYOUT`. `[x]` is optional, `a | b` is a choice, `( )`\n"
    "groups and `...` repeats the item before it. `name:type` is a value whose name does not\n"
    "show its type. The version behind *Since* is the first of Redis or RedisBloom with the\n"
    "command. Commands that only Bloomery has give its own version. Replies and errors are\n"
    "those of Redis or RedisBloom.\n"
    "\n"
    "This page is printed by `bloomery-docs` from the command table and from\n"
    "[parts/commands.md](parts/commands.md); edit these, not the page.\n";

// The command groups in the order of docs/commands.md, with their headings. Other groups follow
// under their own name.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"bf", "Bloom filters"},       {"bloom-ext", "Bloom filters: what Bloomery adds"},
    {"bitmap", "Bitmaps"},         {"string", "Strings"},
    {"generic", "Keys"},           {"transactions", "Transactions"},
    {"connection", "Connections"}, {"server", "Server"},
    {"cluster", "Cluster"},
};

// Returns the usage line, such as "CLIENT KILL ip:port".
std::string usage(const RegisteredCommand& command) {
  std::string text = protocol::upper_case(command.full_name);
  std::replace(text.begin(), text.end(), '|', ' ');
  if (!command.row->syntax.empty()) text += fmt::format(" {}", command.row->syntax);
  return text;
}

// The text of docs/parts/commands.md for each command, by its name in capitals. Printing a command
// removes its text, so the remaining texts belong to no command.
using Notes = std::map<std::string, std::string>;

Notes read_notes() {
  std::ifstream file(BLOOMERY_COMMAND_NOTES);
  Notes notes;
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) {
      name = line.substr(3);
      notes[name];
    } else if (!name.empty()) {
      notes[name] += line + "\n";
    }
  }
  return notes;
}

void print_notes(const std::string& name, Notes& notes) {
  const auto found = notes.find(name);
  if (found == notes.end()) return;
  const std::string& text = found->second;
  fmt::print("{}\n", text.substr(0, text.find_last_not_of('\n') + 1));
  notes.erase(found);
}

void print_command(const RegisteredCommand& command, Notes& notes) {
  std::string categories;
  for (const std::string_view name : server::category_names(*command.row)) {
    categories += fmt::format("{}{}", categories.empty() ? "" : " ", name);
  }
  const std::string name = usage(command).substr(0, command.full_name.size());
  fmt::print("\n### {}\n\n", name);
  fmt::print("```\n{}\n```\n\n{}. {}. *Since {}. {}*\n", usage(command), command.row->summary,
             command.row->complexity, command.row->since, categories);
  print_notes(name, notes);
}

void print_group(const server::Registry& registry, std::string_view group, std::string_view heading,
                 Notes& notes) {
  bool printed_heading = false;
  for (const RegisteredCommand* command : registry.commands()) {
    if (command->row->group != group) continue;
    if (!printed_heading) fmt::print("\n## {}\n", heading);
    printed_heading = true;
    if (command->row->handler != nullptr) print_command(*command, notes);
    for (const RegisteredCommand* subcommand : command->subcommands)
      print_command(*subcommand, notes);
  }
}

bool has_heading(std::string_view group) {
  return std::any_of(std::begin(kGroups), std::end(kGroups),
                     [group](const auto& row) { return row.first == group; });
}

int print_commands() {
  const auto registry = server::Registry::create(server::command_families(), {});
  if (!registry) {
    fmt::print(stderr, "{}\n", registry.error().message);
    return EXIT_FAILURE;
  }
  Notes notes = read_notes();
  fmt::print("{}", kPreface);
  for (const auto& [group, heading] : kGroups) print_group(**registry, group, heading, notes);
  std::string_view last_group;
  for (const RegisteredCommand* command : (*registry)->commands()) {
    const std::string_view group = command->row->group;
    // A group without a fixed heading is printed at its first command. The commands of such a group
    // are adjacent in the list, so the group is not printed twice.
    if (!has_heading(group) && group != last_group) print_group(**registry, group, group, notes);
    last_group = group;
  }
  for (const auto& [name, text] : notes) {
    fmt::print(stderr, "{}: no command has the name {}\n", BLOOMERY_COMMAND_NOTES, name);
  }
  return notes.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int print_configuration(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // this does not throw if `path` is a directory
  const auto sections = server::parse_sample_file(text.str());
  if (!file || sections.size() < 2) {
    fmt::print(stderr, "bloomery-docs: {} is no sample file: give conf/bloomery.conf\n", path);
    return EXIT_FAILURE;
  }
  fmt::print("{}", server::configuration_page(sections));
  return EXIT_SUCCESS;
}

int run(std::span<char*> arguments) {
  constexpr std::string_view kUsage = "usage: bloomery-docs [configuration SAMPLE-FILE]\n";
  if (arguments.empty()) return print_commands();
  const std::string_view first = arguments[0];
  if (arguments.size() == 1 && (first == "--help" || first == "-h")) {
    fmt::print("{}", kUsage);
    return EXIT_SUCCESS;
  }
  if (arguments.size() == 2 && first == "configuration") return print_configuration(arguments[1]);
  fmt::print(stderr, "{}", kUsage);
  return EXIT_FAILURE;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const int exit_code = run(std::span(arguments, static_cast<size_t>(count)).subspan(1));
    // The standard library would not report that it cannot write the last bytes.
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "stdout");
    return exit_code;
  } catch (const std::exception& error) {
    // fmt::print() would throw again if standard error cannot be written either.
    std::fprintf(stderr, "bloomery-docs: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
