// SPDX-License-Identifier: MIT
//
// Error text of WAITAOF.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kNoLogToWaitFor =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

}  // namespace server
