// SPDX-License-Identifier: MIT
//
// Directives: the lines of configuration files and of the command line, read into words.
//
// Invariants: the result holds no `include`: the included lines replace it. A later directive
// overrides an earlier one, and directives are in the order in which they apply.
// Thread-safe: the functions keep no state. They read files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/base/config/option.h"

namespace server {

// Reasons why a configuration line is rejected.
inline constexpr std::string_view kBadDirective = "Bad directive or wrong number of arguments";
inline constexpr std::string_view kUnbalancedLine = "Unbalanced quotes in configuration line";

// Returns the text of a fatal error, in Redis' format. The text quotes the configuration line `at`,
// but hides its secrets.
core::Error fatal_config_error(const Directive& at, std::string_view reason);

// Reads a configuration file. Errors: the text to print before exiting. Limits: 16 MiB per file, 16
// levels of include, 1024 files. A file that includes itself, even through others, is rejected.
core::Result<std::vector<Directive>> read_config_file(const std::string& path);
core::Result<std::vector<Directive>> read_config_text(std::string_view text,
                                                      const std::string& source);
// Returns the directives that a start in `folder` would read if the file at `path` contained
// `text`. Relative paths of include and dir become absolute. Errors: those of reading the files,
// and an include that is a pipe, because reading it would block.
core::Result<std::vector<Directive>> read_at_start(std::string_view text, const std::string& path,
                                                   const std::string& folder);

// The size limit of a configuration file.
inline constexpr size_t kConfigFileLimitBytes = size_t{16} << 20;

}  // namespace server
