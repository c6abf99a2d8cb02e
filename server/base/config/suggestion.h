// SPDX-License-Identifier: MIT
//
// Suggests a known directive that resembles an unknown one. The error that ends the startup
// contains the suggestion.
//
// Thread safety: any thread may call the functions. They only read the constant option table.
#pragma once

#include <string>
#include <string_view>

namespace server {

// Hints that an error text appends if an option was written with one dash instead of two.
inline constexpr const char* kPortHint = "; the port is given as --port 7000";
inline constexpr const char* kDashesHint = "; the names of options follow two dashes: --port 7000";

// Returns a suggestion such as "; did you mean 'maxmemory'?", or the correct form of an option
// written with one dash. Returns an empty text if no directive has a similar name. `name` must be
// in lower case.
std::string hint_for(std::string_view name);

}  // namespace server
