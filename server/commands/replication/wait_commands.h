// SPDX-License-Identifier: MIT
//
// The position for which WAIT and WAITAOF wait, and the error text of WAITAOF.
//
// Thread safety: only the session's thread may record the position.
#pragma once

#include <string_view>

namespace server {

class Session;
struct Services;

inline constexpr std::string_view kNoLogToWaitFor =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

// Records the position after the session's new writes. Must be called after each batch of commands
// that wrote, so that WAIT does not wait for later writes of other clients.
void record_writes(const Services& services, Session& session);

}  // namespace server
