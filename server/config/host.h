// SPDX-License-Identifier: MIT
//
// Hosts and ports of other servers, as configuration, REPLICAOF and REPLCONF name them. They reach
// files, INFO and the log, so whatever comes in is checked by these two functions.
//
// Invariants: a host holds no space, no control character and nothing that INFO's lines are cut at.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace server {

// A name or an address: 1 to 255 letters, digits and ".:-_%", not beginning with '-'. A name in
// another script comes in its ASCII form ("xn--…").
bool is_host(std::string_view text);

// 0 to 65535, without sign or leading zeros. Port 0 reaches no server; Redis takes it too.
std::optional<uint16_t> parse_port(std::string_view text);

}  // namespace server
