// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: updates the text of a configuration file to the values in use.
//
// Invariants: comments, empty lines and directives that are not options keep their place and their
// bytes. Reading the result gives every option its value in use. For rewrite_config_text that holds
// unless an include says otherwise, for rewrite_config_file always.
// Thread safety: free functions without shared state.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace server {

// `texts[i]` is the canonical value in use of row i of option_table(). A line that already has the
// value is left as it was written. An option without a line gets one only when it is not at its
// default. `user_lines` replace the `user` lines, which otherwise stay as they are.
std::string rewrite_config_text(
    std::string_view old_text, std::span<const std::string> texts,
    const std::optional<std::vector<std::string>>& user_lines = std::nullopt);

// The old text with a line for each option that has a value and no line yet.
std::string with_all_options(std::string_view old_text, std::span<const std::string> texts);

// Returns the value that a start from a file of this text would give each row of option_table().
using StartFrom = std::function<core::Result<std::vector<std::string>>(std::string_view text)>;

// The same for a file that may include others, which `start_from` reads. An option to which the
// includes would give another value gets its lines at the end, even at its default. Nothing
// overrides them there. Errors: those of `start_from`, and that a start would still give another
// value.
core::Result<std::string> rewrite_config_file(
    std::string_view old_text, std::span<const std::string> texts,
    const std::optional<std::vector<std::string>>& user_lines, const StartFrom& start_from);

}  // namespace server
