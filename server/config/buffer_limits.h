// SPDX-License-Identifier: MIT
//
// Parses client-output-buffer-limit: the limits on the unsent replies of one client, per class of
// clients.
//
// Invariants: the canonical text names all three classes in the order of ClientClass, with sizes in
// bytes. The class of replicas is called "slave", as in the reply of Redis' CONFIG GET.
// Thread-safe: the functions keep no state.
#pragma once

#include <array>
#include <string>

#include "server/config/option.h"

namespace server {

using BufferLimits = std::array<BufferLimit, kClientClassCount>;

// Converts a value of client-output-buffer-limit into the limits of each client class. REQUIRES:
// `text` is canonical, as CONFIG GET shows it.
BufferLimits buffer_limits_of(const std::string& text);

// Parses `class hard soft seconds`, four words for each class to change. The other classes keep the
// limits in `current`.
Parsed<Value> parse_buffer_limits(const Option& option, Words words, const std::string& current);
std::vector<std::string> write_buffer_limits(const Option& option, const std::string& text);

}  // namespace server
