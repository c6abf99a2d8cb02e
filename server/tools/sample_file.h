// SPDX-License-Identifier: MIT
//
// The sample configuration file, parsed into sections and paragraphs. A paragraph holds the words
// that explain its options. Only conf/bloomery.conf says what an option means;
// docs/configuration.md is generated from it and from the option table.
//
// Invariants: everything is in the file's order; no paragraph is empty.
// Thread-safe: the functions keep no state.
// Source: conf/bloomery.conf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace server {

// SampleParagraph: a paragraph of the file. Each of its four members may be empty.
struct SampleParagraph {
  std::vector<std::string> words{};     // lines of the comment, without '#'
  std::vector<std::string> listed{};    // names of the options in the indented list
  std::vector<std::string> examples{};  // example lines that set no option
  std::vector<std::string> options{};   // canonical names of the options, each once
};

struct SampleSection {
  std::string name;  // heading of the section; empty before the first heading
  std::vector<SampleParagraph> paragraphs{};
};

// Parses the sample file. A paragraph begins with an explanation, and ends with the lines of its
// options and examples. These lines may be commented out ("# masteruser x").
std::vector<SampleSection> parse_sample_file(std::string_view text);

}  // namespace server
