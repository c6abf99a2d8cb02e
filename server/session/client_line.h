// SPDX-License-Identifier: MIT
//
// Writes the line of CLIENT LIST and CLIENT INFO that describes one client.
//
// Thread safety: may be called on any thread.
// Source: https://redis.io/docs/latest/commands/client-list/ names the fields.
#pragma once

#include <string>

#include "server/session/client.h"

namespace server {

// Returns the fields of Redis 7.0 in its order, then fields that later versions added, then a line
// feed. `argument_bytes` is the size of the arguments of the command that the client is running;
// `now_us` is monotonic.
std::string client_line(const Client& client, int64_t now_us, size_t argument_bytes);

}  // namespace server
