// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: updates the text of a configuration file to the values in use.
//
// Invariants: comments, empty lines and directives that are not options keep their place and their
// bytes, except for `user` lines and invalid lines. A server that starts with the new text gives
// every option its present value. rewrite_config_file() always ensures this, but
// rewrite_config_text() only if no included file sets another value.
// Thread-safe: the functions keep no state.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace server {

// Returns the new text of the file. `texts[i]` is the canonical present value of row i of
// option_table(). A line that already has the value is left unchanged. An option without a line
// gets a line only if the value differs from the default. `user_lines` replace the `user` lines,
// which are otherwise left unchanged.
std::string rewrite_config_text(
    std::string_view old_text, std::span<const std::string> texts,
    const std::optional<std::vector<std::string>>& user_lines = std::nullopt);

// Returns the old text, with a line added for each option that has no line and whose value is not
// the empty text.
std::string with_all_options(std::string_view old_text, std::span<const std::string> texts);

// Returns the values that the options, in the order of option_table(), have after a server has read
// a configuration file with this text.
using StartFrom = std::function<core::Result<std::vector<std::string>>(std::string_view text)>;

// Does the same as rewrite_config_text(), for a file that may include other files. `start_from`
// must also read the files that the text includes. If an included file would override an option,
// the option's lines are put at the end of the new text. This happens even if the option has its
// default value.
// Errors: the errors of `start_from`; also if a server that starts from the new text would not get
// all values in `texts`.
core::Result<std::string> rewrite_config_file(
    std::string_view old_text, std::span<const std::string> texts,
    const std::optional<std::vector<std::string>>& user_lines, const StartFrom& start_from);

}  // namespace server
