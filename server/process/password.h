// SPDX-License-Identifier: MIT
//
// Comparing passwords so that the time taken tells nothing of the secret.
//
// Thread safety: pure functions.
// Source: OpenSSL's CRYPTO_memcmp (https://www.openssl.org/docs/man3.0/man3/CRYPTO_memcmp.html).
#pragma once

#include <string_view>

namespace server {

// Compares digests, so that neither length nor content of `secret` shows in the time.
bool is_same_password(std::string_view given, std::string_view secret);

}  // namespace server
