// SPDX-License-Identifier: MIT
#include "server/session/acl/password.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cassert>

namespace server::acl {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

PasswordHash hash_password(std::string_view password) {
  PasswordHash hash{};
  static_assert(sizeof hash == SHA256_DIGEST_LENGTH);
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(), hash.data());
  return hash;
}

std::string hash_text(const PasswordHash& hash) {
  return fmt::format("{:02x}", fmt::join(hash, ""));
}

std::optional<PasswordHash> parse_hash(std::string_view text) {
  PasswordHash hash{};
  if (text.size() != hash.size() * 2) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    hash[i / 2] = static_cast<unsigned char>(hash[i / 2] << 4 | digit);
  }
  return hash;
}

bool is_same_hash(const PasswordHash& a, const PasswordHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string> random_password(size_t bits) {
  assert(bits >= 1 && bits <= kPasswordBitsMax);
  std::array<unsigned char, kPasswordBitsMax / 8> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>((bits + 7) / 8)) != 1) return std::nullopt;
  return fmt::format("{:02x}", fmt::join(bytes, "")).substr(0, (bits + 3) / 4);
}

}  // namespace server::acl
