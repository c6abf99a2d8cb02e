// SPDX-License-Identifier: MIT
#include "server/tools/configuration_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/base/config/option_table.h"
#include "server/tools/option_words.h"

namespace server {
namespace {

constexpr std::string_view kPagePreface =
    "# Configuration\n"
    "\n"
    "For operators who set up or tune a server: each option with its type, range, default and\n"
    "effect. An option is set in a configuration file (`maxclients 500`) or on the command line\n"
    "(`--maxclients 500`). Where *at run time* says yes, `CONFIG SET maxclients 500` changes\n"
    "it. `CONFIG GET maxclients` shows it and `CONFIG REWRITE` writes it into the file. A value\n"
    "out of range is rejected; the error names the range, and nothing changes.\n"
    "\n"
    "This page is printed by `bloomery-docs configuration conf/bloomery.conf`: types, defaults\n"
    "and ranges from the option table, the words from [the sample file](../conf/bloomery.conf).\n"
    "Edit these, not the page.\n";
// The heading for the options before the first heading of the file.
constexpr std::string_view kHeadName = "The file";

// Escapes characters with a meaning in Markdown, except inside backticks.
std::string markdown_of(const std::vector<std::string>& lines) {
  constexpr std::string_view kMarks = "\\<>*_[]|";
  bool is_code = false;
  std::string text;
  for (const std::string& line : lines) {
    for (const char letter : line) {
      if (letter == '`') is_code = !is_code;
      if (!is_code && kMarks.find(letter) != std::string_view::npos) text += '\\';
      text += letter;
    }
    text += '\n';
  }
  return text;
}

// Returns the names of the paragraph's options and of the options that its examples set, without
// duplicates.
std::vector<std::string> heading_names(const SampleParagraph& paragraph) {
  std::vector<std::string> names = paragraph.options;
  for (const std::string& example : paragraph.examples) {
    std::string name = example.substr(0, example.find(' '));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

// Returns the names of an option as a table cell, such as "`port`, `default-port`".
std::string name_cell(const Option& option) {
  std::string cell = fmt::format("`{}`", option.name);
  for (const std::string_view alias : option.aliases) cell += fmt::format(", `{}`", alias);
  return cell;
}

std::string options_table(const std::vector<std::string>& names) {
  std::string text =
      "| option | type | default | values | at run time |\n| --- | --- | --- | --- | --- |\n";
  for (const std::string& name : names) {
    const Option& option = option_table()[*find_option(name)];
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name_cell(option), type_words(option),
                        default_words(option), range_words(option), mutability_words(option));
  }
  return text;
}

// Lists the options without effect, which the sample file does not describe.
std::string inert_options_table() {
  std::string text = "| option | type | default | values |\n| --- | --- | --- | --- |\n";
  for (const Option& option : option_table()) {
    if (!option.inert) continue;
    text += fmt::format("| {} | {} | {} | {} |\n", name_cell(option), type_words(option),
                        default_words(option), range_words(option));
  }
  return text;
}

std::string paragraph_text(const SampleParagraph& paragraph) {
  std::string text;
  if (const auto names = heading_names(paragraph); !names.empty()) {
    text += fmt::format("\n### {}\n", fmt::join(names, ", "));
  }
  if (!paragraph.words.empty()) text += fmt::format("\n{}", markdown_of(paragraph.words));
  if (!paragraph.examples.empty()) {
    text += fmt::format("\n```\n{}\n```\n", fmt::join(paragraph.examples, "\n"));
  }
  if (!paragraph.options.empty()) text += fmt::format("\n{}", options_table(paragraph.options));
  if (!paragraph.listed.empty()) text += fmt::format("\n{}", inert_options_table());
  return text;
}

}  // namespace

std::string configuration_page(const std::vector<SampleSection>& sections) {
  std::string page(kPagePreface);
  for (const SampleSection& section : sections) {
    if (section.paragraphs.empty()) continue;
    const std::string_view name = section.name.empty() ? kHeadName : std::string_view(section.name);
    page += fmt::format("\n## {}\n", name);
    for (const SampleParagraph& paragraph : section.paragraphs) page += paragraph_text(paragraph);
  }
  return page;
}

}  // namespace server
