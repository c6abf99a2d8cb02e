// SPDX-License-Identifier: MIT
//
// The sample configuration file, parsed into sections and paragraphs. A paragraph holds the words
// that explain its options. Only conf/bloomery.conf says what an option means;
// docs/configuration.md is generated from it and from the option table.
//
// Invariants: everything is in the file's order; no paragraph is empty.
// Thread safety: free functions over values.
// Source: conf/bloomery.conf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace server {

// Any of the four may be empty.
struct SampleParagraph {
  std::vector<std::string> words{};     // lines of the comment, without '#'
  std::vector<std::string> listed{};    // the indented names
  std::vector<std::string> examples{};  // lines that set no option, as written in a file
  std::vector<std::string> options{};   // canonical names, each once
};

struct SampleSection {
  std::string name;  // empty before the first heading
  std::vector<SampleParagraph> paragraphs{};
};

// Options and examples count where they end their paragraph, also commented out: "# masteruser x".
std::vector<SampleSection> parse_sample_file(std::string_view text);

}  // namespace server
