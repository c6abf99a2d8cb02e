// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_format.h"

#include <gtest/gtest.h>

#include "persistence/bytes/crc64.h"

namespace persistence {
namespace {

using Kind = AofAnnotation::Kind;

TEST(AofNamesTest, FilesAreNamedAsRedisNamesThem) {
  const AofNames names("appendonly.aof");
  EXPECT_EQ(names.base(1, AofBaseFormat::kRdb), "appendonly.aof.1.base.rdb");
  EXPECT_EQ(names.base(12, AofBaseFormat::kCommands), "appendonly.aof.12.base.aof");
  EXPECT_EQ(names.incremental(3), "appendonly.aof.3.incr.aof");
  EXPECT_EQ(names.manifest(), "appendonly.aof.manifest");
  EXPECT_EQ(names.temporary_manifest(), "temp-appendonly.aof.manifest");
  EXPECT_EQ(names.temporary_incremental(), "temp-appendonly.aof.incr");
  EXPECT_EQ(aof_finished_rewrite_name(77), "temp-rewriteaof-bg-77.aof");
}

TEST(AofNamesTest, RewriteNamesAreRecognized) {
  EXPECT_TRUE(is_aof_rewrite_name("temp-rewriteaof-1.aof"));
  EXPECT_TRUE(is_aof_rewrite_name(aof_finished_rewrite_name(1)));
  EXPECT_FALSE(is_aof_rewrite_name("temp-1.rdb"));
  EXPECT_FALSE(is_aof_rewrite_name("temp-rewriteaof-1.rdb"));
}

TEST(AofFormatTest, BatchEndsWithTheChecksumOfTheWholeFile) {
  RunningChecksum checksum;
  std::string file;
  append_aof_header(file, checksum);
  for (const std::string_view commands : {"*1\r\n$4\r\nPING\r\n", "*1\r\n$4\r\nTIME\r\n"}) {
    std::string batch(commands);
    const uint64_t expected = crc64(0, file + batch);
    end_aof_batch(batch, checksum);
    EXPECT_EQ(batch, std::string(commands) + checksum_text(expected) + "\r\n");
    file += batch;
    EXPECT_EQ(checksum.value(), crc64(0, file));
    EXPECT_EQ(checksum.size_bytes(), file.size());
  }
  EXPECT_TRUE(file.starts_with("#bloomery-ver:1\r\n#bloomery-crc64:"));
}

TEST(AofFormatTest, ChecksumHasSixteenDigits) {
  EXPECT_EQ(checksum_text(0x1f), "#bloomery-crc64:000000000000001f");
  EXPECT_EQ(checksum_text(crc64(0, "123456789")), "#bloomery-crc64:e9c6d914c4b8d9ca");
}

TEST(AofFormatTest, AnnotationsAreParsed) {
  const auto checksum = parse_annotation("#bloomery-crc64:e9c6d914c4b8d9ca");
  EXPECT_EQ(checksum.kind, Kind::kChecksum);
  EXPECT_EQ(checksum.value, 0xe9c6d914c4b8d9caU);
  EXPECT_EQ(parse_annotation("#bloomery-ver:12").kind, Kind::kVersion);
  EXPECT_EQ(parse_annotation("#bloomery-ver:12").value, 12U);
  std::string line;
  append_timestamp_line(line, 1700000000);
  EXPECT_EQ(line, "#TS:1700000000\r\n");
  EXPECT_EQ(parse_annotation("#TS:1700000000").kind, Kind::kTimestamp);
  EXPECT_EQ(parse_annotation("#TS:1700000000").value, 1700000000U);
  for (const char* other : {"#", "#TS:", "#TS:x", "#bloomery", "# bloomery-ver:1"}) {
    EXPECT_EQ(parse_annotation(other).kind, Kind::kOther) << other;
  }
}

TEST(AofFormatTest, PositionIsRead) {
  const std::string id(40, 'a');
  std::string line;
  append_position_line(line, {3, id, 12'345});
  EXPECT_EQ(line, "#bloomery-pos:" + id + " 12345 3\r\n");
  const auto annotation = parse_annotation(line.substr(0, line.size() - 2));
  EXPECT_EQ(annotation.kind, Kind::kPosition);
  ASSERT_TRUE(annotation.position);
  EXPECT_EQ(annotation.position->id, id);
  EXPECT_EQ(annotation.position->offset, 12'345);
  EXPECT_EQ(annotation.position->stream_database, 3);
  EXPECT_EQ(annotation.position->epoch, 0);
  line.clear();
  append_position_line(line, {.id = id, .offset = 1, .epoch = 7});
  EXPECT_EQ(line, "#bloomery-pos:" + id + " 1 0 7\r\n");
  EXPECT_EQ(parse_annotation(line.substr(0, line.size() - 2)).position->epoch, 7);
  for (const std::string& rest : {id, id + " 1", id + " 1 ", id + " -1 0", id + " 1 0 0 0",
                                  id + " 1 0 -1", id + " 9223372036854775808 0", id + "a 1 0",
                                  std::string(" 1 0"), std::string(40, 'A') + " 1 0"}) {
    EXPECT_EQ(parse_annotation("#bloomery-pos:" + rest).kind, Kind::kMalformed) << rest;
  }
}

TEST(AofFormatTest, InvalidLinesOfOursAreMalformed) {
  for (const char* line : {"#bloomery-crc64:", "#bloomery-crc64:e9c6d914c4b8d9c",
                           "#bloomery-crc64:E9C6D914C4B8D9CA", "#bloomery-crc64:e9c6d914c4b8d9ca0",
                           "#bloomery-crc64:e9c6d914c4b8d9cg", "#bloomery-ver:", "#bloomery-ver:-1",
                           "#bloomery-ver:1x", "#bloomery-ver:99999999999999999999"}) {
    EXPECT_EQ(parse_annotation(line).kind, Kind::kMalformed) << line;
  }
}

TEST(AofFormatTest, ChecksumLineIsFoundAnywhere) {
  const std::string line = checksum_text(5) + "\r\n";
  EXPECT_EQ(line.size(), kChecksumLineBytes);
  EXPECT_EQ(find_checksum_line(line), 0U);
  EXPECT_EQ(find_checksum_line("abc" + line + line), 3U);
  EXPECT_EQ(find_checksum_line("#bloomery-crc64:12" + line), 18U);
  EXPECT_FALSE(find_checksum_line(line.substr(0, line.size() - 1)));
  EXPECT_FALSE(find_checksum_line(checksum_text(5) + "\n\n"));
  EXPECT_FALSE(find_checksum_line(""));
}

}  // namespace
}  // namespace persistence
