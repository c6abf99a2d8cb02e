// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <random>

#include "core/bitfield.h"
#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/commands/strings/bitfield_command.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class BitmapCommandsTest : public CommandTest {
 protected:
  struct Case {
    std::vector<std::string> command;
    ::testing::Matcher<const std::string&> reply;
  };
  void expect_all(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      std::string line;
      for (const std::string& word : one.command) line += word + " ";
      EXPECT_THAT(run(one.command), one.reply) << line;
    }
  }
  // Stores the string "foo" in the key s.
  void write_foo() { run({"BITFIELD", "s", "SET", "u24", "0", "6713199"}); }
  uint64_t changes() const { return state_.changes.load(); }

  const std::string kBadOffset = error(core::bitmap::kInvalidBitOffset);
  const ::testing::Matcher<const std::string&> kBadBit = is_error("ERR", "bit is");
  const std::string kSyntax = error(kSyntaxError);
  const std::string kInteger = error(kNotAnInteger);
};

TEST_F(BitmapCommandsTest, SetbitAnswersTheOldBit) {
  expect_all({
      {{"SETBIT", "k", "7", "1"}, integer(0)},
      {{"SETBIT", "k", "7", "1"}, integer(1)},
      {{"SETBIT", "k", "100", "0"}, integer(0)},
      {{"GETBIT", "k", "7"}, integer(1)},
      {{"GETBIT", "k", "100000"}, integer(0)},
      {{"GETBIT", "none", "0"}, integer(0)},
      {{"BITCOUNT", "k"}, integer(1)},
      {{"SETBIT", "k", "x", "2"}, kBadOffset},
      {{"SETBIT", "k", "-1", "1"}, kBadOffset},
      {{"SETBIT", "k", "4294967296", "1"}, kBadOffset},
      {{"GETBIT", "k", "4294967296"}, kBadOffset},
      {{"SETBIT", "k", "0", "2"}, kBadBit},
      {{"SETBIT", "k", "0", "x"}, kBadBit},
  });
}

TEST_F(BitmapCommandsTest, SetbitCountsOnlyRealChanges) {
  run({"SETBIT", "k", "7", "0"});
  EXPECT_EQ(changes(), 1U) << "the key is new";
  run({"SETBIT", "k", "3", "0"});
  EXPECT_EQ(changes(), 1U);
  run({"SETBIT", "k", "3", "1"});
  EXPECT_EQ(changes(), 2U);
  run({"SETBIT", "k", "8", "0"});
  EXPECT_EQ(changes(), 3U) << "the value is longer";
}

TEST_F(BitmapCommandsTest, OffsetsEndAtTheLongestString) {
  const std::vector<NamedValue> pairs{{"proto-max-bulk-len", "2mb"}};
  ASSERT_TRUE(config_.set(pairs));
  EXPECT_EQ(run({"SETBIT", "k", "16777216", "1"}), kBadOffset);
  EXPECT_EQ(run({"SETBIT", "k", "16777215", "1"}), integer(0));
}

TEST_F(BitmapCommandsTest, GrowthThatDoesNotFitIsRefused) {
  memory_.set_limit(1);
  EXPECT_EQ(run({"SETBIT", "k", "4294967295", "1"}).substr(0, 4), "-OOM");
  EXPECT_EQ(run({"GETBIT", "k", "0"}), integer(0));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(BitmapCommandsTest, FiltersAreNotBitmaps) {
  run({"BF.ADD", "f", "item"});
  const std::string wrong = error(kWrongType);
  expect_all({
      {{"SETBIT", "f", "0", "1"}, wrong},
      {{"GETBIT", "f", "0"}, wrong},
      {{"BITCOUNT", "f"}, wrong},
      {{"BITCOUNT", "f", "x"}, wrong},
      {{"BITPOS", "f", "1", "x"}, wrong},
      {{"BITOP", "AND", "d", "f"}, wrong},
      {{"BITFIELD", "f", "GET", "u8", "0"}, wrong},
      {{"BITFIELD", "f", "SET", "u8", "0", "1"}, wrong},
      {{"BITOP", "NOT", "f", "none"}, integer(0)},
      {{"BF.CARD", "f"}, integer(0)},
  });
}

TEST_F(BitmapCommandsTest, BitcountTakesRangesOfBytesAndBits) {
  write_foo();
  expect_all({
      {{"BITCOUNT", "s"}, integer(16)},
      {{"BITCOUNT", "s", "0", "0"}, integer(4)},
      {{"BITCOUNT", "s", "-2", "-1"}, integer(12)},
      {{"BITCOUNT", "s", "0", "-1", "byte"}, integer(16)},
      {{"BITCOUNT", "s", "1", "2", "BIT"}, integer(2)},
      {{"BITCOUNT", "s", "5", "9"}, integer(0)},
      {{"BITCOUNT", "s", "-1", "-20", "foo"}, integer(0)},
      {{"BITCOUNT", "none", "x"}, integer(0)},
      {{"BITCOUNT", "s", "1"}, kSyntax},
      {{"BITCOUNT", "s", "x", "1", "foo"}, kInteger},
      {{"BITCOUNT", "s", "0", "1", "foo"}, kSyntax},
      {{"BITCOUNT", "s", "x", "1", "BIT", "y"}, kSyntax},
  });
}

TEST_F(BitmapCommandsTest, BitposFindsTheFirstBit) {
  write_foo();
  run({"BITFIELD", "ones", "SET", "u16", "0", "65535"});
  expect_all({
      {{"BITPOS", "s", "1"}, integer(1)},
      {{"BITPOS", "s", "0"}, integer(0)},
      {{"BITPOS", "s", "1", "1"}, integer(9)},
      {{"BITPOS", "s", "1", "3", "7", "BIT"}, integer(5)},
      {{"BITPOS", "s", "1", "-4", "-18"}, integer(1)},
      {{"BITPOS", "ones", "0"}, integer(16)},
      {{"BITPOS", "ones", "0", "1"}, integer(16)},
      {{"BITPOS", "ones", "0", "0", "-1"}, integer(-1)},
      {{"BITPOS", "ones", "0", "2"}, integer(-1)},
      {{"BITPOS", "none", "0"}, integer(0)},
      {{"BITPOS", "none", "1", "x"}, integer(-1)},
      {{"BITPOS", "s", "2"}, is_error("ERR", "bit argument")},
      {{"BITPOS", "s", "x"}, kInteger},
      {{"BITPOS", "s", "1", "x", "1", "foo"}, kInteger},
      {{"BITPOS", "s", "1", "0", "x", "foo"}, kSyntax},
      {{"BITPOS", "s", "1", "0", "1", "BIT", "x"}, kSyntax},
  });
}

TEST_F(BitmapCommandsTest, BitopStoresTheLongestLength) {
  run({"BITFIELD", "a", "SET", "u8", "0", "12"});
  run({"BITFIELD", "b", "SET", "u16", "0", "2815"});
  const auto get = [](std::string key) {
    return std::vector<std::string>{"BITFIELD", std::move(key), "GET", "u16", "0"};
  };
  expect_all({
      {{"BITOP", "AND", "d", "a", "b"}, integer(2)},
      {get("d"), array({integer(0x0800)})},
      {{"bitop", "or", "d", "a", "b"}, integer(2)},
      {get("d"), array({integer(0x0eff)})},
      {{"BITOP", "XOR", "d", "a", "b"}, integer(2)},
      {get("d"), array({integer(0x06ff)})},
      {{"BITOP", "NOT", "d", "a"}, integer(1)},
      {get("d"), array({integer(0xf300)})},
      {{"BITOP", "DIFF", "d", "b", "a"}, integer(2)},
      {get("d"), array({integer(0x02ff)})},
      {{"BITOP", "DIFF1", "d", "a", "b"}, integer(2)},
      {get("d"), array({integer(0x02ff)})},
      {{"BITOP", "ANDOR", "d", "a", "b", "none"}, integer(2)},
      {get("d"), array({integer(0x0800)})},
      {{"BITOP", "ONE", "d", "a", "b"}, integer(2)},
      {get("d"), array({integer(0x06ff)})},
      {{"BITOP", "AND", "a", "a", "none"}, integer(1)},
      {get("a"), array({integer(0)})},
  });
}

TEST_F(BitmapCommandsTest, BitopOfNothingDeletesItsDestination) {
  run({"SETBIT", "d", "0", "1"});
  EXPECT_EQ(run({"BITOP", "AND", "d", "none", "neither"}), integer(0));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
  const uint64_t before = changes();
  EXPECT_EQ(run({"BITOP", "AND", "d", "none"}), integer(0));
  EXPECT_EQ(changes(), before);
}

TEST_F(BitmapCommandsTest, BitopNamesWhatItMisses) {
  expect_all({
      {{"BITOP", "foo", "d", "a"}, kSyntax},
      {{"BITOP", "NOT", "d", "a", "b"}, is_error("ERR", "BITOP NOT")},
      {{"BITOP", "diff", "d", "a"}, is_error("ERR", "BITOP DIFF ")},
      {{"BITOP", "DIFF1", "d", "a"}, is_error("ERR", "BITOP DIFF1 ")},
      {{"BITOP", "ANDOR", "d", "a"}, is_error("ERR", "BITOP ANDOR ")},
  });
}

TEST_F(BitmapCommandsTest, BitfieldScopesOverflowToTheWritesAfterIt) {
  expect_all({
      {{"BITFIELD", "k",        "SET", "u8",     "0",   "255", "INCRBY", "u8",       "0",
        "2",        "OVERFLOW", "SAT", "INCRBY", "u8",  "0",   "300",    "OVERFLOW", "FAIL",
        "INCRBY",   "u8",       "0",   "1",      "GET", "u8",  "0"},
       array({integer(0), integer(1), integer(255), kNull, integer(255)})},
      {{"BITFIELD", "k", "INCRBY", "u8", "#0", "1"}, array({integer(0)})},
      {{"BITFIELD", "k", "GET", "i5", "#70000"}, array({integer(0)})},
  });
}

TEST_F(BitmapCommandsTest, BitfieldThatOnlyReadsCreatesNothing) {
  expect_all({
      {{"BITFIELD", "k", "GET", "u8", "0"}, array({integer(0)})},
      {{"BITFIELD", "k", "OVERFLOW", "FAIL"}, array({})},
      {{"BITFIELD", "k"}, array({})},
      {{"BITFIELD_RO", "k", "GET", "i64", "9"}, array({integer(0)})},
  });
  EXPECT_EQ(keyspace_.db_size(0), 0U);
  EXPECT_EQ(run({"BITFIELD", "k", "OVERFLOW", "FAIL", "SET", "u1", "0", "2"}), array({kNull}));
  EXPECT_EQ(keyspace_.db_size(0), 1U) << "room is made before the overflow is seen";
}

TEST_F(BitmapCommandsTest, BitfieldRefusesWhatItDoesNotKnow) {
  const std::string type = error(core::bitmap::kInvalidFieldType);
  expect_all({
      {{"BITFIELD", "k", "GET", "u8"}, kSyntax},
      {{"BITFIELD", "k", "SET", "u8", "0"}, kSyntax},
      {{"BITFIELD", "k", "PUT", "u8", "0"}, kSyntax},
      {{"BITFIELD", "k", "OVERFLOW"}, kSyntax},
      {{"BITFIELD", "k", "OVERFLOW", "x"}, error(kInvalidOverflow)},
      {{"BITFIELD", "k", "GET", "u64", "0"}, type},
      {{"BITFIELD", "k", "GET", "u8", "-1"}, kBadOffset},
      {{"BITFIELD", "k", "SET", "u8", "0", "x"}, kInteger},
      {{"BITFIELD_RO", "k", "SET", "u8", "0", "1"}, error(kReadsOnly)},
  });
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(BitmapCommandsTest, BitsBehaveAsAVectorOfBools) {
  constexpr unsigned kSeed = 20260;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  std::vector<bool> model(600);
  size_t size_bits = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t offset = random() % model.size();
    const bool bit = random() % 2 == 0;
    EXPECT_EQ(run({"SETBIT", "k", std::to_string(offset), bit ? "1" : "0"}),
              integer(model[offset] ? 1 : 0));
    model[offset] = bit;
    size_bits = std::max(size_bits, offset / 8 * 8 + 8);
    const size_t first = random() % size_bits;
    const size_t last = first + random() % (size_bits - first);
    int64_t count = 0;
    int64_t position = -1;
    for (size_t i = first; i <= last; ++i) {
      if (model[i] && position < 0) position = static_cast<int64_t>(i);
      count += model[i] ? 1 : 0;
    }
    const std::string from = std::to_string(first);
    const std::string to = std::to_string(last);
    ASSERT_EQ(run({"BITCOUNT", "k", from, to, "BIT"}), integer(count));
    ASSERT_EQ(run({"BITPOS", "k", "1", from, to, "BIT"}), integer(position));
  }
}

}  // namespace
}  // namespace server
