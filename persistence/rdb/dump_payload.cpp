// SPDX-License-Identifier: MIT
#include "persistence/rdb/dump_payload.h"

#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/crc64.h"

namespace persistence {
namespace {

constexpr size_t kFooterBytes = 10;
// Redis 7.0's: the newest that all servers in use take.
constexpr uint16_t kWrittenVersion = 10;
// Strings and module values have been the same in all versions, those of Valkey 9 included.
constexpr uint16_t kVersionMax = 81;

}  // namespace

void append_dump_footer(std::string& payload) {
  ByteWriter writer(payload);
  writer.u16(kWrittenVersion);
  writer.u64(crc64(0, payload));
}

std::string_view widely_readable_dump(std::string_view payload, std::string& scratch) {
  const size_t body_bytes = payload.size() - kFooterBytes;
  if (ByteReader(payload.substr(body_bytes)).u16() <= kWrittenVersion) return payload;
  scratch = payload.substr(0, body_bytes);
  append_dump_footer(scratch);
  return scratch;
}

std::optional<std::string_view> checked_dump_body(std::string_view payload) {
  if (payload.size() < kFooterBytes) return std::nullopt;
  const size_t body_bytes = payload.size() - kFooterBytes;
  ByteReader footer(payload.substr(body_bytes));
  const uint16_t version = footer.u16();
  const uint64_t sum = footer.u64();
  const std::string_view summed = payload.substr(0, payload.size() - sizeof(sum));
  if (version > kVersionMax || sum != crc64(0, summed)) return std::nullopt;
  return payload.substr(0, body_bytes);
}

}  // namespace persistence
