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

#include "server/base/config/option.h"

namespace server {

using BufferLimits = std::array<BufferLimit, kClientClassCount>;

// Reasons why a text is rejected.
inline constexpr std::string_view kNoBufferLimit =
    "Wrong number of arguments in buffer limit configuration.";
inline constexpr std::string_view kNoClientClass =
    "Invalid client class specified in buffer limit configuration.";
inline constexpr std::string_view kInvalidBufferLimit =
    "Error in hard, soft or soft_seconds setting in buffer limit configuration.";

// Parses the value of client-output-buffer-limit. REQUIRES: `text` is in canonical form.
BufferLimits buffer_limits_of(const std::string& text);

// Parses `class hard soft seconds`, four words for each class to change. The other classes keep the
// limits in `current`.
Parsed<Value> parse_buffer_limits(const Option& option, Words words, const std::string& current);
std::vector<std::string> write_buffer_limits(const Option& option, const std::string& text);

}  // namespace server
