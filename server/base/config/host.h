// SPDX-License-Identifier: MIT
//
// Validates the hosts and ports of other servers, which come from the configuration, REPLICAOF and
// REPLCONF. The server writes them to files, INFO and the log, so they must not contain separators.
//
// Invariants: a valid host contains no space, no control character and no separator of INFO's
// lines.
// Thread-safe: the functions keep no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace server {

// Returns whether a host may contain the character. '%' precedes the interface in a link-local
// address.
bool is_host_character(char c);

// Returns whether the text is a host name or an address: 1 to 255 letters, digits and ".:-_%", not
// beginning with '-'. Names in other scripts must be given in ASCII form ("xn--…").
bool is_host(std::string_view text);

// Returns "host:port", with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, uint16_t port);

// Parses a port from 0 to 65535, without sign or leading zeros. Port 0 is accepted as in Redis,
// although no server listens on it.
std::optional<uint16_t> parse_port(std::string_view text);

}  // namespace server
