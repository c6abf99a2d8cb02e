// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: the text of a configuration file brought in line with the values in use.
//
// Invariants: comments, empty lines and directives that are not options keep their place and their
// bytes; reading the result gives every option its value in use, unless an include says otherwise.
// Thread safety: a free function without shared state.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace server {

// `texts[i]` is the canonical value in use of row i of option_table(). A line that already says so
// is left as it was written; an option without a line gets one only when it is not at its default.
// `user_lines` replace the `user` lines, which otherwise stay as they are.
std::string rewrite_config_text(
    std::string_view old_text, std::span<const std::string> texts,
    const std::optional<std::vector<std::string>>& user_lines = std::nullopt);

}  // namespace server
