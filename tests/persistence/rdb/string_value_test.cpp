// SPDX-License-Identifier: MIT
#include "persistence/rdb/string_value.h"

#include <gtest/gtest.h>

#include <string>

#include "persistence/bytes/byte_codec.h"
#include "tests/support/memory_streams.h"

namespace persistence {
namespace {

using core::keyspace::Entry;
using core::keyspace::EntryPtr;

std::string text_of(const Entry& entry) {
  core::keyspace::IntegerText scratch;
  return std::string(entry.text(scratch));
}
std::string stored(const std::string& text, Packing packing = Packing::kNever) {
  std::string bytes;
  ByteWriter(bytes).string(text, packing);
  return bytes;
}
// Reads a stored string. Expects the same text, and the encoding that SET chooses for this text.
void expect_read(const std::string& text, const std::string& bytes) {
  const EntryPtr entry = Entry::create("key");
  StreamReader reader(bytes);
  StringReader string = reader.string();
  ASSERT_EQ(read_string_value(string, *entry), StringOutcome::kRead) << text.substr(0, 20);
  EXPECT_EQ(text_of(*entry), text);
  const EntryPtr set = Entry::create("key");
  ASSERT_TRUE(set->set_string(text));
  EXPECT_EQ(entry->encoding(), set->encoding()) << text.substr(0, 20);
  EXPECT_TRUE(reader.at_end());
}

TEST(StringValueTest, NumbersBecomeIntegers) {
  for (const char* text : {"0", "-1", "127", "32768", "-2147483648", "9223372036854775807"}) {
    expect_read(text, stored(text, Packing::kIfSmaller));
    expect_read(text, stored(text));
  }
}

TEST(StringValueTest, NonCanonicalNumbersStayText) {
  for (const char* text : {"", "007", "+1", "1.5", "9223372036854775808"}) {
    expect_read(text, stored(text));
  }
}

TEST(StringValueTest, EveryLengthHasTheEncodingOfSet) {
  for (size_t size = 0; size < 200; ++size)
    expect_read(std::string(size, 'v'), stored(std::string(size, 'v')));
}

TEST(StringValueTest, LongTextIsReadOnce) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  expect_read(text, stored(text));
}

TEST(StringValueTest, PackedTextIsUnpacked) {
  expect_read(std::string(10'000, 'z'), stored(std::string(10'000, 'z'), Packing::kIfSmaller));
  expect_read(std::string(30, 'z'), stored(std::string(30, 'z'), Packing::kIfSmaller));
}

TEST(StringValueTest, ArbitraryBytesAreKept) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  expect_read(text, stored(text));
}

TEST(StringValueTest, TruncatedTextIsDamage) {
  for (const size_t size : {10, 40, 70, 5000}) {
    const std::string bytes = stored(std::string(size, 'v'));
    for (const size_t cut : {bytes.size() - 1, bytes.size() / 2}) {
      const EntryPtr entry = Entry::create("key");
      const std::string torn = bytes.substr(0, cut);
      MemorySource source(torn);
      StreamReader reader(source, {});
      StringReader string = reader.string();
      if (reader.ok()) {
        EXPECT_EQ(read_string_value(string, *entry), StringOutcome::kDamaged) << size;
      }
      EXPECT_FALSE(reader.ok());
    }
  }
}

}  // namespace
}  // namespace persistence
