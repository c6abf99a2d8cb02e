// SPDX-License-Identifier: MIT
//
// bloomery-docs: prints docs/commands.md, the reference of all commands, from the command table and
// docs/parts/commands.md, which has examples and the meaning of options;
// `bloomery-docs configuration conf/bloomery.conf` prints docs/configuration.md from the option
// table and the sample file, whose words it takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "protocol/arguments.h"
#include "server/config/option_table.h"
#include "server/config/page/option_words.h"
#include "server/config/page/sample_file.h"
#include "server/dispatch/command_reply.h"
#include "server/dispatch/registry.h"

namespace {

using server::RegisteredCommand;

constexpr std::string_view kPreface =
    "# Commands\n"
    "\n"
    "This page is printed by `bloomery-docs` from the command table and from\n"
    "[parts/commands.md](parts/commands.md); edit these, not the page.\n"
    "\n"
    "In a usage line lower-case words are values and upper-case ones are literal; `[x]` is\n"
    "optional, `a | b` is a choice, `( )` groups and `...` repeats what stands before it.\n"
    "`name:type` is a value whose type its name does not tell. *Since* is the version of Redis or\n"
    "RedisBloom that first had the command. Replies and errors are theirs. Commands that Bloomery\n"
    "adds have a version of its own.\n";

// Groups in the order of the page, with their headings; others follow under their own name.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"bf", "Bloom filters"},       {"bloom-ext", "Bloom filters: what Bloomery adds"},
    {"bitmap", "Bitmaps"},         {"string", "Strings"},
    {"generic", "Keys"},           {"transactions", "Transactions"},
    {"connection", "Connections"}, {"server", "Server"},
    {"cluster", "Cluster"},
};

// "`CLIENT KILL ip:port`"
std::string usage(const RegisteredCommand& command) {
  std::string text = protocol::upper_case(command.full_name);
  std::replace(text.begin(), text.end(), '|', ' ');
  if (!command.row->syntax.empty()) text += fmt::format(" {}", command.row->syntax);
  return text;
}

// What docs/parts/commands.md says of each command, by its name in capitals. Printing one takes it
// out, so that what is left belongs to no command.
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
  const auto registry = server::Registry::create({});
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
    // Rows of one group stand together in their family.
    if (!has_heading(group) && group != last_group) print_group(**registry, group, group, notes);
    last_group = group;
  }
  for (const auto& [name, text] : notes) {
    fmt::print(stderr, "{}: no command has the name {}\n", BLOOMERY_COMMAND_NOTES, name);
  }
  return notes.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

constexpr std::string_view kOptionsPreface =
    "# Configuration\n"
    "\n"
    "This page is printed by `bloomery-docs configuration conf/bloomery.conf`: types, defaults "
    "and\n"
    "ranges from the option table, the words from [the sample file](../conf/bloomery.conf). Edit\n"
    "these, not the page.\n"
    "\n"
    "An option is set in a configuration file (`maxclients 500`), on the command line\n"
    "(`--maxclients 500`), or, where *at run time* says yes, by `CONFIG SET maxclients 500`;\n"
    "`CONFIG GET maxclients` shows it and `CONFIG REWRITE` writes it into the file. A value that "
    "is\n"
    "out of range is refused with the range, and nothing changes.\n";

// Lines of a comment as Markdown: outside of `code` no character may mean anything to it.
void print_lines(const std::vector<std::string>& lines) {
  bool is_code = false;
  for (const std::string& line : lines) {
    std::string text;
    for (const char letter : line) {
      if (letter == '`') is_code = !is_code;
      if (!is_code && std::string_view("<>*_[]|").find(letter) != std::string_view::npos) {
        text += '\\';
      }
      text += letter;
    }
    fmt::print("{}\n", text);
  }
}

void print_options(const server::SampleGroup& group) {
  std::string names;
  for (const std::string& name : group.options) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  fmt::print("\n### {}\n\n", names);
  print_lines(group.words);
  fmt::print(
      "\n| option | type | default | values | at run time |\n| --- | --- | --- | --- | --- |\n");
  for (const std::string& name : group.options) {
    const server::Option& option = server::option_table()[*server::find_option(name)];
    std::string cell = fmt::format("`{}`", name);
    for (const auto alias : option.aliases) cell += fmt::format(", `{}`", alias);
    fmt::print("| {} | {} | {} | {} | {} |\n", cell, server::type_words(option),
               server::default_words(option), server::range_words(option),
               server::mutability_words(option));
  }
}

// Options without effect have no words of their own.
void print_inert_options() {
  fmt::print("\n| option | type | default | values |\n| --- | --- | --- | --- |\n");
  for (const server::Option& option : server::option_table()) {
    if (!option.inert) continue;
    fmt::print("| `{}` | {} | {} | {} |\n", option.name, server::type_words(option),
               server::default_words(option), server::range_words(option));
  }
}

// The lines before the first that is indented, which begins a list of names.
std::vector<std::string> prose_of(const server::SampleSection& section) {
  const auto end = std::find(section.preface.begin(), section.preface.end(), "");
  return {section.preface.begin(), section.groups.empty() ? end : section.preface.end()};
}

int print_configuration(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto sections = server::parse_sample_file(text);
  if (!file || sections.size() < 2) {
    fmt::print(stderr, "{}: no sample file\n", path);
    return EXIT_FAILURE;
  }
  fmt::print("{}", kOptionsPreface);
  for (const auto& section : sections) {
    if (section.name.empty()) continue;  // how a file is written; the page says it above
    fmt::print("\n## {}\n", section.name);
    if (const auto prose = prose_of(section); !prose.empty()) {
      fmt::print("\n");
      print_lines(prose);
    }
    for (const auto& group : section.groups) print_options(group);
    if (section.groups.empty()) print_inert_options();
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) return print_commands();
  if (count == 3 && std::string_view(arguments[1]) == "configuration") {
    return print_configuration(arguments[2]);
  }
  fmt::print(stderr, "usage: bloomery-docs [configuration SAMPLE-FILE]\n");
  return EXIT_FAILURE;
}
