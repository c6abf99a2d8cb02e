// SPDX-License-Identifier: MIT
//
// Writes the line of CLIENT LIST and CLIENT INFO that describes one session.
//
// Thread safety: reads only members that a session shares among threads, so any thread may describe
// any session.
// Source: https://redis.io/docs/latest/commands/client-list/ names the fields.
#pragma once

#include <string>

#include "server/session/session.h"

namespace server {

// Returns the fields of Redis 7.0 in its order, then fields that later versions added, then a line
// feed. `argument_bytes` is the size of the arguments of the command that the session is running;
// `now_us` is monotonic.
std::string client_line(const Session& session, int64_t now_us, size_t argument_bytes);

}  // namespace server
