// SPDX-License-Identifier: MIT
#include "persistence/rdb/dump_payload.h"

#include <gtest/gtest.h>

#include <string>

#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/crc64.h"

namespace persistence {
namespace {

std::string with_version(std::string body, uint16_t version) {
  ByteWriter writer(body);
  writer.u16(version);
  writer.u64(crc64(0, body));
  return body;
}

TEST(DumpPayloadTest, FooterIsParsed) {
  for (const std::string& body : {std::string(), std::string("\0value", 6)}) {
    std::string payload = body;
    append_dump_footer(payload);
    EXPECT_EQ(payload.size(), body.size() + 10);
    EXPECT_EQ(checked_dump_body(payload), body);
  }
}

TEST(DumpPayloadTest, EveryFlippedBitAndTruncationIsFound) {
  std::string payload = "value";
  append_dump_footer(payload);
  for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
    std::string flipped = payload;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(checked_dump_body(flipped)) << bit;
  }
  for (size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(checked_dump_body(payload.substr(0, size))) << size;
  }
}

TEST(DumpPayloadTest, VersionsOfServersInUseAreAccepted) {
  for (const uint16_t version : {uint16_t{0}, uint16_t{6}, uint16_t{10}, uint16_t{81}}) {
    EXPECT_EQ(checked_dump_body(with_version("value", version)), "value") << version;
  }
  EXPECT_FALSE(checked_dump_body(with_version("value", 82)));
}

TEST(DumpPayloadTest, KeyMetadataOfRedisIsDropped) {
  std::string meta("\xF3\x01", 2);  // opcode of key metadata, and number of metadata classes
  meta += std::string("spec\x02\x05\x00", 7);
  const std::string payload = with_version(meta + "value", 13);
  EXPECT_EQ(checked_dump_body(payload), "value");
  std::string scratch;
  const std::string_view readable = widely_readable_dump(payload, scratch);
  EXPECT_EQ(readable, with_version("value", 10));
  // A payload with Valkey's version cannot contain key metadata. So the metadata bytes are returned
  // as the beginning of the value. A later check rejects the first of them as a type byte.
  EXPECT_EQ(checked_dump_body(with_version(meta + "value", 80)), meta + "value");
  EXPECT_EQ(checked_dump_body(with_version(meta.substr(0, 4), 13)), meta.substr(0, 4));
}

}  // namespace
}  // namespace persistence
