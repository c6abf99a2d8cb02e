// SPDX-License-Identifier: MIT
//
// Tests access to the bits of values: missing keys, growth of a value, and the largest offset.
#include "server/commands/strings/bitmap_access.h"

#include <gmock/gmock.h>

#include <string>

#include "core/bitfield.h"
#include "core/keyspace/keyspace.h"
#include "server/base/process/memory_monitor.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using testing::StartsWith;

using BitmapAccessTest = KeyTest;

TEST_F(BitmapAccessTest, AMissingKeyIsAllZeros) {
  EXPECT_EQ(run({"GETBIT", "none", "7"}), integer(0));
  EXPECT_EQ(run({"BITCOUNT", "none"}), integer(0));
  EXPECT_EQ(run({"EXISTS", "none"}), integer(0));
}

TEST_F(BitmapAccessTest, ANewValueIsAsLongAsItsLastBit) {
  EXPECT_EQ(run({"SETBIT", "k", "17", "0"}), integer(0));
  EXPECT_EQ(text_of("k"), std::string(3, '\0'));
}

TEST_F(BitmapAccessTest, AValueGrowsByZeros) {
  put("k", "ab");
  EXPECT_EQ(run({"SETBIT", "k", "47", "1"}), integer(0));
  EXPECT_EQ(text_of("k"), "ab" + std::string(3, '\0') + "\x01");
}

TEST_F(BitmapAccessTest, AValueNeverGetsShorter) {
  put("k", "abcdef");
  EXPECT_EQ(run({"SETBIT", "k", "0", "1"}), integer(0));
  EXPECT_EQ(text_of("k").size(), 6U);
}

TEST_F(BitmapAccessTest, ANumberIsItsDigits) {
  run({"SET", "k", "12"});
  EXPECT_EQ(run({"GETBIT", "k", "7"}), integer('1' & 1));
  EXPECT_EQ(run({"SETBIT", "k", "15", "1"}), integer('2' & 1));
  EXPECT_EQ(text_of("k"), "13");
  EXPECT_EQ(run({"INCR", "k"}), integer(14));
}

TEST_F(BitmapAccessTest, GrowthKeepsTheExpiry) {
  run({"SET", "k", "a", "PX", "1000"});
  run({"SETBIT", "k", "1000", "1"});
  EXPECT_EQ(run({"PTTL", "k"}), integer(1000));
}

TEST_F(BitmapAccessTest, OffsetsEndAtTheLongestString) {
  ASSERT_EQ(run({"CONFIG", "SET", "proto-max-bulk-len", "1mb"}), kOk);
  const int64_t end = int64_t{8} << 20;
  EXPECT_EQ(run({"SETBIT", "k", std::to_string(end - 1), "1"}), integer(0));
  EXPECT_EQ(run({"SETBIT", "k", std::to_string(end), "1"}), error(core::bitmap::kInvalidBitOffset));
}

TEST_F(BitmapAccessTest, WithoutMemoryNothingChanges) {
  put("k", "ab");
  memory_.set_limit(memory_.refresh() + (1 << 20));
  for (const char* const name : {"k", "new"}) {
    EXPECT_THAT(run({"SETBIT", name, "800000000", "1"}), StartsWith("-OOM")) << name;
  }
  memory_.set_limit(0);
  EXPECT_EQ(text_of("k"), "ab");
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

TEST_F(BitmapAccessTest, AFilterHasNoBitsOfThisKind) {
  put_filter("f", "item");
  EXPECT_THAT(run({"SETBIT", "f", "0", "1"}), StartsWith("-WRONGTYPE"));
  EXPECT_THAT(run({"GETBIT", "f", "0"}), StartsWith("-WRONGTYPE"));
}

}  // namespace
}  // namespace server
