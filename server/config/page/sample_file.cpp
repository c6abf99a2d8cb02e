// SPDX-License-Identifier: MIT
#include "server/config/page/sample_file.h"

#include <algorithm>
#include <optional>

#include "server/config/option_table.h"
#include "server/config/words.h"

namespace server {
namespace {

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(trim(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "### Network ###" -> "Network"
std::optional<std::string> heading(std::string_view line) {
  if (!line.starts_with("##") || !line.ends_with('#')) return std::nullopt;
  const auto begin = line.find_first_not_of('#');
  if (begin == std::string_view::npos) return std::nullopt;
  return std::string(trim(line.substr(begin, line.find_last_not_of('#') + 1 - begin)));
}

std::string_view without_mark(std::string_view line) {
  return line.starts_with('#') ? trim(line.substr(1)) : line;
}

// The row that a line sets, or would if it were not commented out. Lists of names are indented.
const Option* option_of(std::string_view line) {
  if (line.starts_with("#  ")) return nullptr;
  const std::string_view directive = without_mark(line);
  const auto index = find_option(directive.substr(0, directive.find(' ')));
  return index ? &option_table()[*index] : nullptr;
}

void add_paragraph(SampleSection& section, const std::vector<std::string>& lines) {
  size_t words_end = lines.size();
  while (words_end > 0 && option_of(lines[words_end - 1]) != nullptr) --words_end;
  SampleGroup group;
  for (size_t i = words_end; i < lines.size(); ++i) {
    const std::string name(option_of(lines[i])->name);
    if (std::find(group.options.begin(), group.options.end(), name) == group.options.end()) {
      group.options.push_back(name);
    }
  }
  auto& words = group.options.empty() ? section.preface : group.words;
  if (!words.empty()) words.emplace_back();
  for (size_t i = 0; i < words_end; ++i) words.emplace_back(without_mark(lines[i]));
  while (!words.empty() && words.back().empty()) words.pop_back();
  if (!group.options.empty()) section.groups.push_back(std::move(group));
}

}  // namespace

std::vector<SampleSection> parse_sample_file(std::string_view text) {
  std::vector<SampleSection> sections(1);
  std::vector<std::string> paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) add_paragraph(sections.back(), paragraph);
    paragraph.clear();
  };
  for (const std::string& line : split_lines(text)) {
    if (line.empty()) {
      end_paragraph();
    } else if (auto name = heading(line)) {
      end_paragraph();
      sections.push_back({.name = std::move(*name)});
    } else {
      paragraph.push_back(line);
    }
  }
  end_paragraph();
  return sections;
}

}  // namespace server
