// SPDX-License-Identifier: MIT
//
// Error texts of AUTH and HELLO.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";
inline constexpr std::string_view kNoPasswordToCheck =
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?";

}  // namespace server
