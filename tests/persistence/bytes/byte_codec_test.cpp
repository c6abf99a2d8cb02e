// SPDX-License-Identifier: MIT
#include "persistence/bytes/byte_codec.h"

#include <gtest/gtest.h>

#include "persistence/bytes/crc64.h"
#include "persistence/bytes/module_value.h"

namespace persistence {
namespace {

std::string written(std::string_view text, Packing packing) {
  std::string out;
  ByteWriter(out).string(text, packing);
  return out;
}

TEST(Crc64, HasTheKnownChecksums) {
  EXPECT_EQ(crc64(0, ""), 0U);
  EXPECT_EQ(crc64(0, "a"), 0x5FB354025B277B14U);
  EXPECT_EQ(crc64(0, "123456789"), 0xE9C6D914C4B8D9CAU);
  EXPECT_EQ(crc64(crc64(0, "1234"), "56789"), 0xE9C6D914C4B8D9CAU);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(crc64(0, all), 0x88BFA574E806500EU);
}

TEST(ByteCodec, WritesLengthsInTheirShortestForm) {
  const std::pair<uint64_t, std::string> cases[] = {
      {0, std::string(1, '\0')},
      {63, "\x3F"},
      {64, "\x40\x40"},
      {1152, "\x44\x80"},
      {16383, "\x7F\xFF"},
      {16384, std::string("\x80\x00\x00\x40\x00", 5)},
      {0xFFFFFFFF, "\x80\xFF\xFF\xFF\xFF"},
      {uint64_t{1} << 32, std::string("\x81\x00\x00\x00\x01\x00\x00\x00\x00", 9)},
  };
  for (const auto& [value, bytes] : cases) {
    std::string out;
    ByteWriter(out).length(value);
    EXPECT_EQ(out, bytes) << value;
    ByteReader reader(bytes);
    EXPECT_EQ(reader.length(), value);
    EXPECT_TRUE(reader.ok());
  }
}

TEST(ByteCodec, WritesStringsAsRedisDoes) {
  EXPECT_EQ(written("hello", Packing::kIfSmaller), "\x05hello");
  EXPECT_EQ(written("-129", Packing::kNever), "\xC1\x7F\xFF");
  EXPECT_EQ(written("007", Packing::kNever),
            "\x03"
            "007");
  EXPECT_EQ(written("2147483648", Packing::kNever),
            "\x0A"
            "2147483648");
  EXPECT_EQ(written("-2147483648", Packing::kNever), std::string("\xC2\0\0\0\x80", 5));
  EXPECT_EQ(written(std::string(64, 'a'), Packing::kIfSmaller),
            std::string("\xC3\x09\x40\x40\x01\x61\x61\xE0\x33\x00\x01\x61\x61", 13));
  EXPECT_EQ(written(std::string(64, 'a'), Packing::kNever), "\x40\x40" + std::string(64, 'a'));
}

TEST(ByteCodec, RejectsTruncatedAndInvalidInput) {
  for (const std::string& bytes :
       {std::string(), std::string("\x82\x01"), std::string("\x81\x01"),
        std::string("\x81\xFF\xFF\xFF\xFF", 5), std::string("\xC0\x01")}) {
    ByteReader reader(bytes);
    EXPECT_EQ(reader.length(), 0U);
    EXPECT_FALSE(reader.ok()) << testing::PrintToString(bytes);
    EXPECT_EQ(reader.u64(), 0U);
  }
}

TEST(ModuleValue, IdsEqualThoseOfTheModules) {
  EXPECT_EQ(module_id("MBbloom--", 4), 0x3016E5A289BEF804U);
  EXPECT_EQ(module_id("bloomfltr", 1), 0x6E5A2899F96DAC01U);
  EXPECT_EQ(module_name(0x3016E5A289BEF804U), "MBbloom--");
  EXPECT_EQ(module_name(module_id("bloomery-", 1)), "bloomery-");
  EXPECT_EQ(module_version(0x3016E5A289BEF804U), 4U);
}

TEST(ModuleValue, AnyValueCanBeSkipped) {
  std::string bytes;
  ByteWriter writer(bytes);
  ModuleWriter out(writer, module_id("CMSk-TYPE", 0));
  out.unsigned_number(7);
  out.real_number(0.5);
  out.string("bytes", Packing::kNever);
  out.end();
  bytes += "next";
  StreamReader reader(bytes);
  reader.length();
  ModuleReader in(reader);
  in.skip_to_end();
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.read_ahead(), "next");
}

TEST(ModuleValue, UnexpectedTagIsAFault) {
  StreamReader reader(std::string_view("\x04\x01", 2));
  ModuleReader in(reader);
  EXPECT_EQ(in.unsigned_number(), 0U);
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace persistence
