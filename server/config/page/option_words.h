// SPDX-License-Identifier: MIT
//
// Words for docs/configuration.md: the type, range and default of a row of the option table.
//
// Invariants: the words are the same on every machine, also where the default is not.
// Thread safety: free functions over constant rows.
// Source: docs/configuration.md.
#pragma once

#include <string>

#include "server/config/option.h"

namespace server {

std::string type_words(const Option& option);
std::string default_words(const Option& option);
std::string range_words(const Option& option);
// Whether CONFIG SET changes it: "yes", "no", or "if enable-protected-configs allows".
std::string mutability_words(const Option& option);

}  // namespace server
