// SPDX-License-Identifier: MIT
#include "persistence/rdb/dump_payload.h"

#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/crc64.h"
#include "persistence/bytes/stream_reader.h"
#include "persistence/rdb/foreign_values.h"
#include "persistence/rdb/rdb_format.h"

namespace persistence {
namespace {

constexpr size_t kFooterBytes = 10;
// The newest snapshot version that is accepted in a payload. The forms of strings and module values
// are the same in all versions, including Valkey 9.
constexpr uint16_t kVersionMax = 81;

// A payload of Redis 8.6 may begin with module metadata of the key.
std::string_view without_key_meta(std::string_view body, uint16_t version) {
  if (version >= rdb::kFirstValkeyVersion) return body;
  if (body.empty() || static_cast<uint8_t>(body.front()) != rdb::kKeyMetaOrSlotImport) return body;
  StreamReader reader(body.substr(1));
  skip_key_meta(reader);
  // If the metadata are damaged, their end is unknown, and the body is returned unchanged. Callers
  // then reject it, because its first byte is not the type of a value.
  return reader.ok() ? body.substr(1 + reader.offset()) : body;
}

}  // namespace

void append_dump_footer(std::string& payload) {
  ByteWriter writer(payload);
  writer.u16(rdb::kWrittenVersion);
  writer.u64(crc64(0, payload));
}

std::string_view widely_readable_dump(std::string_view payload, std::string& scratch) {
  const size_t body_bytes = payload.size() - kFooterBytes;
  const uint16_t version = ByteReader(payload.substr(body_bytes)).u16();
  if (version <= rdb::kWrittenVersion) return payload;
  scratch = without_key_meta(payload.substr(0, body_bytes), version);
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
  return without_key_meta(payload.substr(0, body_bytes), version);
}

}  // namespace persistence
