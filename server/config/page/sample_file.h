// SPDX-License-Identifier: MIT
//
// The sample configuration file as its reader sees it: sections, and in them groups of options with
// the words that explain them. conf/bloomery.conf is the one place that says what an option means;
// docs/configuration.md is printed from it and from the option table.
//
// Invariants: a group has options, words before the first group of a section are its preface.
// Thread safety: free functions over values.
// Source: conf/bloomery.conf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace server {

struct SampleGroup {
  std::vector<std::string> words{};    // lines of the comment, without '#'
  std::vector<std::string> options{};  // canonical names, each once, in the file's order
};

struct SampleSection {
  std::string name;                    // empty before the first heading
  std::vector<std::string> preface{};  // lines of comments that stand before no option
  std::vector<SampleGroup> groups{};
};

// Options that are commented out count too, where they end their paragraph: "# masteruser replica".
std::vector<SampleSection> parse_sample_file(std::string_view text);

}  // namespace server
