// SPDX-License-Identifier: MIT
//
// value_digest: the hash of a string value. DIGEST returns it as 16 hexadecimal digits, and clients
// may compute it themselves: it is XXH3 with 64 bits and no seed.
//
// Thread safety: pure functions.
// Source: https://redis.io/docs/latest/commands/digest
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace core::keyspace {

uint64_t value_digest(std::string_view text);
std::string digest_text(uint64_t digest);
// Returns nullopt unless `text` is 16 hexadecimal digits, in upper or lower case.
std::optional<uint64_t> parse_digest(std::string_view text);

}  // namespace core::keyspace
