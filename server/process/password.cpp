// SPDX-License-Identifier: MIT
#include "server/process/password.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <array>

namespace server {
namespace {

std::array<unsigned char, SHA256_DIGEST_LENGTH> digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> result{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data());
  return result;
}

}  // namespace

bool is_same_password(std::string_view given, std::string_view secret) {
  const auto a = digest(given);
  const auto b = digest(secret);
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace server
