// SPDX-License-Identifier: MIT
//
// PasswordHash: the SHA-256 of a password. The password itself is not stored.
//
// Invariants: the time of a comparison does not depend on the secret.
// Thread safety: pure functions.
// Source: OpenSSL's CRYPTO_memcmp (https://www.openssl.org/docs/man3.0/man3/CRYPTO_memcmp.html).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace server::acl {

using PasswordHash = std::array<unsigned char, 32>;

PasswordHash hash_password(std::string_view password);
// These functions convert a hash to and from 64 lower-case hexadecimal digits. Any other text gives
// nullopt.
std::string hash_text(const PasswordHash& hash);
std::optional<PasswordHash> parse_hash(std::string_view text);
// Returns whether the hashes are equal. Compares in constant time.
bool is_same_hash(const PasswordHash& a, const PasswordHash& b);

// Returns as many random hexadecimal digits as `bits` bits need. Returns nullopt if the system
// provides no randomness. REQUIRES: `bits` is 1 to kPasswordBitsMax.
std::optional<std::string> random_password(size_t bits);
inline constexpr size_t kPasswordBitsMax = 4096;

}  // namespace server::acl
