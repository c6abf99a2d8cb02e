// SPDX-License-Identifier: MIT
//
// Directives: the lines of configuration files and of the command line, read into words.
//
// Invariants: the result holds no `include`: the included lines replace it. A later directive
// overrides an earlier one, and the order says which is later.
// Thread safety: free functions without shared state; they read files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/config/option.h"

namespace server {

// The text a fatal error prints, in Redis' form. Secrets of the line are left out of it.
core::Error fatal_config_error(const Directive& at, std::string_view reason);

// Errors: the text to print before exiting. Limits: 16 MiB per file, 16 levels of include, 1024
// files; a file that includes itself, even through others, is refused.
core::Result<std::vector<Directive>> read_config_file(const std::string& path);
core::Result<std::vector<Directive>> read_config_text(std::string_view text,
                                                      const std::string& source);
// Returns the directives that a start in `folder` would read if the file at `path` held `text`.
// Relative paths of include and dir become absolute there. Errors: also an include that is a pipe,
// which would block.
core::Result<std::vector<Directive>> read_at_start(std::string_view text, const std::string& path,
                                                   const std::string& folder);

// The largest configuration file that is read at all.
inline constexpr size_t kConfigFileLimitBytes = size_t{16} << 20;

}  // namespace server
