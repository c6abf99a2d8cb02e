// SPDX-License-Identifier: MIT
//
// Protects against web pages that make a browser send HTTP requests to this port. The lines of a
// request would be rejected one by one, but a line of its body that is a command would be executed.
//
// Thread safety: any thread may call both functions. All threads together log one warning per
// minute.
// Source: redis-server's securityWarningCommand.
#pragma once

#include <cstdint>
#include <string_view>

namespace server {

// Returns whether a command of that name indicates an HTTP request: POST, or the Host header that
// every browser sends. GET does not count, because it is also a Redis command.
bool is_http_word(std::string_view name);

// Logs the warning. The text is that of redis-server, because tools look for it.
void warn_of_http(std::string_view client_address, int64_t now_ms);

}  // namespace server
