// SPDX-License-Identifier: MIT
//
// The frame of DUMP payloads: a type byte, a value as in snapshots, and a footer of version and
// checksum.
//
// Thread safety: pure functions.
// Source: docs/formats.md, "DUMP payloads".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace persistence {

// Type bytes of values, in snapshots as here. Only these hold what this server has.
inline constexpr uint8_t kStringType = 0;
inline constexpr uint8_t kModuleType = 7;

// Closes a payload that holds type byte and value.
void append_dump_footer(std::string& payload);

// The payload as servers from Redis 7.0 on take it: `payload` itself, or a copy in `scratch` with
// another footer when a newer server wrote it. REQUIRES: checked_dump_body() accepts it.
std::string_view widely_readable_dump(std::string_view payload, std::string& scratch);

// The payload without its footer; nothing when it is too short, from the future, or damaged.
std::optional<std::string_view> checked_dump_body(std::string_view payload);

}  // namespace persistence
