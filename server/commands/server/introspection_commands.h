// SPDX-License-Identifier: MIT
//
// Error texts of COMMAND GETKEYS.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kInvalidCommand = "ERR Invalid command specified";
inline constexpr std::string_view kNoKeyArguments = "ERR The command has no key arguments";
inline constexpr std::string_view kInvalidKeyArguments =
    "ERR Invalid arguments specified for command";

}  // namespace server
