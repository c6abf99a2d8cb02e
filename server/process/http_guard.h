// SPDX-License-Identifier: MIT
//
// A guard against pages that make a browser send requests to this port: an HTTP request's lines
// would be refused one by one, until its body holds one that is a command.
//
// Thread safety: free functions; the warning is given once a minute by all threads together.
// Source: redis-server's securityWarningCommand.
#pragma once

#include <cstdint>
#include <string_view>

namespace server {

// Whether a command of that name means an HTTP request: POST, or the Host header, which every
// request of a browser has. GET is a command.
bool is_http_word(std::string_view name);

// In redis-server's words, for tools look for them.
void warn_of_http(std::string_view client_address, int64_t now_ms);

}  // namespace server
