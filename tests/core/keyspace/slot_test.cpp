// SPDX-License-Identifier: MIT
#include "core/keyspace/slot.h"

#include <gtest/gtest.h>

#include <string>

namespace core::keyspace {
namespace {

TEST(SlotTest, ChecksumMatchesTheStandard) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(crc16(""), 0);
}

TEST(SlotTest, ChecksumOfAnyLengthMatchesBitwise) {
  std::string bytes;
  for (int length = 0; length < 50; ++length) {
    unsigned expected = 0;
    for (const char c : bytes) {
      expected ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
      for (int bit = 0; bit < 8; ++bit) {
        expected = (expected & 0x8000) != 0 ? (expected << 1 ^ 0x1021) & 0xffff : expected << 1;
      }
    }
    EXPECT_EQ(crc16(bytes), expected) << length;
    EXPECT_EQ(crc16_by_tables(bytes), expected) << length;
    bytes += static_cast<char>(length * 151 + 7);
  }
}

TEST(SlotTest, SlotsEqualThoseOfRedis) {
  EXPECT_EQ(slot_of("foo"), 12182U);
  EXPECT_EQ(slot_of("123456789"), 12739U);
  EXPECT_EQ(slot_of(""), 0U);
}

TEST(SlotTest, OnlyTheTagIsHashed) {
  EXPECT_EQ(slot_of("a{foo}b"), 12182U);
  EXPECT_EQ(slot_of("foo{bar}{zap}"), 5061U);
  EXPECT_EQ(slot_of("foo{{bar}}zap"), 4015U);
}

TEST(SlotTest, KeyWithoutACompleteTagIsHashedWhole) {
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363U);
  EXPECT_EQ(slot_of("{}x"), 10595U);
  EXPECT_NE(slot_of("{foo"), slot_of("foo"));
  EXPECT_NE(slot_of("}foo{"), slot_of("foo"));
}

TEST(SlotTest, TagIsFoundAtAnyPosition) {
  for (size_t length = 5; length < 40; ++length) {
    for (size_t open = 0; open + 5 <= length; ++open) {
      std::string name(length, 'x');
      name.replace(open, 5, "{foo}");
      EXPECT_EQ(slot_of(name), 12182U) << name;
      // 'z' and 0xfb each differ from '{' in one bit. They must not be mistaken for '{'.
      name[open] = 'z';
      EXPECT_EQ(slot_of(name), crc16(name) % kSlotCount) << name;
      name[open] = '\xfb';
      EXPECT_EQ(slot_of(name), crc16(name) % kSlotCount) << name;
    }
  }
}

TEST(SlotTest, BytesAboveAsciiAreUnsigned) {
  // The expected slot is redis-server 7.0's reply to CLUSTER KEYSLOT.
  EXPECT_EQ(slot_of(std::string("\xff\xfe\x00\x80", 4)), 8824U);
}

}  // namespace
}  // namespace core::keyspace
