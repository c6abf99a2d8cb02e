// SPDX-License-Identifier: MIT
//
// Writes and checks the frame of DUMP payloads. A payload is a type byte, a value as in snapshots,
// and a footer with version and checksum.
//
// Thread safety: pure functions.
// Source: docs/formats.md, "DUMP payloads".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace persistence {

// The type bytes of strings and of module values, as in snapshots. This server supports no other
// types.
inline constexpr uint8_t kStringType = 0;
inline constexpr uint8_t kModuleType = 7;

// Appends the footer to a payload that consists of a type byte and a value.
void append_dump_footer(std::string& payload);

// Returns the payload in a form that Redis 7.0 and all later versions accept. If the RDB version of
// `payload` is higher than the version that this server writes, returns a copy in `scratch` with
// another footer. Otherwise returns `payload` itself. REQUIRES: checked_dump_body() accepts
// `payload`.
std::string_view widely_readable_dump(std::string_view payload, std::string& scratch);

// Returns the payload without its footer; nullopt if it is too short, too new, or damaged.
std::optional<std::string_view> checked_dump_body(std::string_view payload);

}  // namespace persistence
