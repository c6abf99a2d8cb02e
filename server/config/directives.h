// SPDX-License-Identifier: MIT
//
// Directives: the lines of configuration files and of the command line, read into words.
//
// Invariants: `include` never appears in the result, it is replaced by what it names; the order is
// the order in which a later directive overrides an earlier one.
// Thread safety: free functions without shared state; they read files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace server {

struct Directive {
  std::string source;  // a path, "standard input" or "the command line"
  size_t line = 0;     // from 1
  std::string text;    // as written, trimmed
  std::vector<std::string> words;
};

// The text a fatal error prints, in Redis' form.
core::Error fatal_config_error(const Directive& at, std::string_view reason);

// Errors: the text to print before exiting. Limits: 16 MiB per file, 16 levels of include, 1024
// files; a file that includes itself, even through others, is refused.
core::Result<std::vector<Directive>> read_config_file(const std::string& path);
core::Result<std::vector<Directive>> read_config_text(std::string_view text,
                                                      const std::string& source);

// The largest configuration file that is read at all.
inline constexpr size_t kConfigFileLimitBytes = size_t{16} << 20;

}  // namespace server
