// SPDX-License-Identifier: MIT
#include "core/keyspace/value_digest.h"

#include <fmt/format.h>

#include <charconv>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace core::keyspace {

uint64_t value_digest(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::string digest_text(uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

std::optional<uint64_t> parse_digest(std::string_view text) {
  constexpr size_t kDigits = 16;
  constexpr int kBase = 16;
  uint64_t digest = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, digest, kBase);
  if (text.size() != kDigits || text[0] == '-' || error != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return digest;
}

}  // namespace core::keyspace
