// SPDX-License-Identifier: MIT
#include "persistence/bytes/module_value.h"

#include <gtest/gtest.h>

#include <string>

namespace persistence {
namespace {

constexpr const char* kName = "MBbloom--";

// Returns a module value with fields of all kinds, followed by one more byte.
std::string written() {
  std::string bytes;
  ByteWriter writer(bytes);
  ModuleWriter value(writer, module_id(kName, 4));
  value.unsigned_number(300);
  value.real_number(0.25);
  value.string("text", Packing::kNever);
  value.end();
  writer.u8(0x7f);
  return bytes;
}

TEST(ModuleValueTest, IdEncodesNameAndVersion) {
  const uint64_t id = module_id(kName, 4);
  EXPECT_EQ(module_name(id), kName);
  EXPECT_EQ(module_version(id), 4U);
  EXPECT_NE(id, module_id("MBbloom-x", 4));
  EXPECT_NE(id, module_id(kName, 5));
}

TEST(ModuleValueTest, EveryCharacterOfANameIsDecoded) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (size_t at = 0; at + 9 <= alphabet.size(); at += 5) {
    const std::string name = alphabet.substr(at, 9);
    EXPECT_EQ(module_name(module_id(name, 1023)), name);
    EXPECT_EQ(module_version(module_id(name, 1023)), 1023U);
  }
}

TEST(ModuleValueTest, FieldsSurviveARoundTrip) {
  const std::string bytes = written();
  StreamReader reader(bytes);
  EXPECT_EQ(reader.length(), module_id(kName, 4));
  ModuleReader value(reader);
  EXPECT_EQ(value.unsigned_number(), 300U);
  EXPECT_EQ(value.real_number(), 0.25);
  StringReader text = value.string();
  std::string got(text.size(), ' ');
  EXPECT_TRUE(text.read(got));
  EXPECT_EQ(got, "text");
  value.end();
  EXPECT_TRUE(value.ok());
  EXPECT_EQ(reader.u8(), 0x7f);
}

TEST(ModuleValueTest, StringHeadAndBytesFormAString) {
  std::string whole;
  ByteWriter whole_writer(whole);
  ModuleWriter(whole_writer, 7).string("bytes", Packing::kNever);
  std::string parts;
  ByteWriter parts_writer(parts);
  ModuleWriter(parts_writer, 7).string_head(5);
  parts_writer.bytes("bytes");
  EXPECT_EQ(parts, whole);
}

TEST(ModuleValueTest, UnknownValueIsSkippedToItsEnd) {
  const std::string bytes = written();
  StreamReader reader(bytes);
  (void)reader.length();
  ModuleReader(reader).skip_to_end();
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.u8(), 0x7f);
}

TEST(ModuleValueTest, FieldsOfOtherWritersAreSkippedToo) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.length(1);  // type of the field: a signed number
  writer.length(12);
  writer.length(3);  // type of the field: a float
  writer.u32(0);
  writer.length(0);
  writer.u8(0x7f);
  StreamReader reader(bytes);
  ModuleReader(reader).skip_to_end();
  EXPECT_EQ(reader.u8(), 0x7f);
}

TEST(ModuleValueTest, UnexpectedFieldIsAFault) {
  const std::string bytes = written();
  StreamReader reader(bytes);
  (void)reader.length();
  ModuleReader value(reader);
  EXPECT_EQ(value.real_number(), 0);
  ASSERT_FALSE(value.ok());
  EXPECT_NE(reader.error().message.find("another field than expected"), std::string::npos);
}

TEST(ModuleValueTest, EarlyEndMarkIsAFault) {
  const std::string bytes = written();
  StreamReader reader(bytes);
  (void)reader.length();
  ModuleReader value(reader);
  value.end();
  EXPECT_FALSE(value.ok());
}

TEST(ModuleValueTest, UnknownKindCannotBeSkipped) {
  std::string bytes;
  ByteWriter(bytes).length(6);
  StreamReader reader(bytes);
  ModuleReader(reader).skip_to_end();
  ASSERT_FALSE(reader.ok());
  EXPECT_NE(reader.error().message.find("unknown kind"), std::string::npos);
}

TEST(ModuleValueTest, EveryTruncationIsAFault) {
  const std::string bytes = written();
  for (size_t size = 0; size + 1 < bytes.size(); ++size) {
    StreamReader reader(std::string_view(bytes).substr(0, size));
    (void)reader.length();
    ModuleReader(reader).skip_to_end();
    EXPECT_FALSE(reader.ok()) << size;
  }
}

}  // namespace
}  // namespace persistence
