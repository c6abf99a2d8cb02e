// SPDX-License-Identifier: MIT
#include "server/tools/sample_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <utility>

#include "server/base/config/option_table.h"
#include "server/base/config/words.h"

namespace server {
namespace {

// Returns the heading in a line: "Network" for "### Network ###".
std::optional<std::string> heading(std::string_view line) {
  if (!line.starts_with("##") || !line.ends_with('#')) return std::nullopt;
  const auto begin = line.find_first_not_of('#');
  if (begin == std::string_view::npos) return std::nullopt;
  return std::string(trim(line.substr(begin, line.find_last_not_of('#') + 1 - begin)));
}

std::string_view without_mark(std::string_view line) {
  return line.starts_with('#') ? trim(line.substr(1)) : line;
}

bool is_listed(std::string_view line) {
  return line.starts_with("#  ");
}

// Returns the option that a line sets, or that a commented-out line would set.
std::string_view directive_name(std::string_view line) {
  const std::string_view directive = without_mark(line);
  return directive.substr(0, directive.find(' '));
}

const Option* option_of(std::string_view line) {
  if (is_listed(line)) return nullptr;
  const auto index = find_option(directive_name(line));
  return index ? &option_table()[*index] : nullptr;
}

bool is_example(std::string_view line) {
  constexpr std::array<std::string_view, 3> kOthers = {"include", "rename-command", "user"};
  return !is_listed(line) && std::ranges::find(kOthers, directive_name(line)) != kOthers.end();
}

void add_once(std::vector<std::string>& names, std::string_view name) {
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

void add_words(SampleParagraph& paragraph, std::string_view line) {
  const std::string_view words = without_mark(line);
  if (!is_listed(line)) {
    paragraph.words.emplace_back(words);
  } else {
    for (std::string& name : split_at_spaces(words)) paragraph.listed.push_back(std::move(name));
  }
}

void add_paragraph(SampleSection& section, const std::vector<std::string>& lines) {
  size_t words_end = lines.size();
  while (words_end > 0 &&
         (option_of(lines[words_end - 1]) != nullptr || is_example(lines[words_end - 1]))) {
    --words_end;
  }
  SampleParagraph paragraph;
  for (size_t i = 0; i < words_end; ++i) add_words(paragraph, lines[i]);
  auto& words = paragraph.words;
  while (!words.empty() && words.back().empty()) words.pop_back();
  for (size_t i = words_end; i < lines.size(); ++i) {
    if (const Option* const option = option_of(lines[i]); option != nullptr) {
      add_once(paragraph.options, option->name);
    } else {
      paragraph.examples.emplace_back(without_mark(lines[i]));
    }
  }
  const bool is_empty = words.empty() && paragraph.listed.empty() && words_end == lines.size();
  if (!is_empty) section.paragraphs.push_back(std::move(paragraph));
}

}  // namespace

std::vector<SampleSection> parse_sample_file(std::string_view text) {
  std::vector<SampleSection> sections(1);
  std::vector<std::string> paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) add_paragraph(sections.back(), paragraph);
    paragraph.clear();
  };
  std::istringstream input{std::string(text)};
  for (std::string read; std::getline(input, read);) {
    const std::string_view line = trim(read);
    if (line.empty()) {
      end_paragraph();
    } else if (auto name = heading(line)) {
      end_paragraph();
      sections.push_back({.name = std::move(*name)});
    } else {
      paragraph.emplace_back(line);
    }
  }
  end_paragraph();
  return sections;
}

}  // namespace server
