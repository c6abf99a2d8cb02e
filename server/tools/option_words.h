// SPDX-License-Identifier: MIT
//
// Returns texts for docs/configuration.md: the type, range and default of an option.
//
// Invariants: the texts are the same on every machine, even if the default depends on the machine.
// Thread-safe: the functions keep no state, and the rows that they read are constants.
// Source: docs/configuration.md.
#pragma once

#include <string>

#include "server/base/config/option.h"

namespace server {

std::string type_words(const Option& option);
std::string default_words(const Option& option);
std::string range_words(const Option& option);
// Returns whether CONFIG SET can change the option: "yes", "no", or "if enable-protected-configs
// allows".
std::string mutability_words(const Option& option);

}  // namespace server
