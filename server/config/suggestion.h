// SPDX-License-Identifier: MIT
//
// Suggestions for an unknown directive, for the message that ends the start.
//
// Thread safety: free functions over the option table.
#pragma once

#include <string>
#include <string_view>

namespace server {

// "; did you mean 'maxmemory'?", what a directive with one dash should be, or nothing where no
// directive has a similar name. `name` is in lower case.
std::string hint_for(std::string_view name);

}  // namespace server
