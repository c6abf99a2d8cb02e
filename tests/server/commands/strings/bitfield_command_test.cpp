// SPDX-License-Identifier: MIT
#include "server/commands/strings/bitfield_command.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/bitfield.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using testing::StartsWith;

class BitfieldCommandTest : public CommandTest {
 protected:
  std::string field(std::vector<std::string> words) {
    words.insert(words.begin(), {"BITFIELD", "k"});
    return run(words);
  }
  static std::string values(const std::vector<int64_t>& numbers) {
    std::vector<std::string> replies;
    for (const int64_t number : numbers) replies.push_back(integer(number));
    return array(replies);
  }
};

TEST_F(BitfieldCommandTest, WithoutOperationsTheReplyIsEmpty) {
  EXPECT_EQ(field({}), "*0\r\n");
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0));
}

TEST_F(BitfieldCommandTest, OperationsAreDoneInTurn) {
  EXPECT_EQ(field({"SET", "u8", "0", "255", "GET", "u4", "0", "INCRBY", "u8", "8", "7", "GET", "u8",
                   "8"}),
            values({0, 15, 7, 7}));
  EXPECT_EQ(run({"GET", "k"}), bulk("\xff\x07"));
}

TEST_F(BitfieldCommandTest, SetAnswersTheValueOfBefore) {
  EXPECT_EQ(field({"SET", "i8", "0", "-1"}), values({0}));
  EXPECT_EQ(field({"SET", "i8", "0", "5"}), values({-1}));
}

TEST_F(BitfieldCommandTest, AnOffsetMayCountFields) {
  EXPECT_EQ(field({"SET", "u8", "#1", "65", "GET", "u8", "8"}), values({0, 65}));
  EXPECT_EQ(run({"STRLEN", "k"}), integer(2));
}

TEST_F(BitfieldCommandTest, SignedFieldsAreReadSigned) {
  field({"SET", "u8", "0", "200"});
  EXPECT_EQ(field({"GET", "i8", "0", "GET", "u8", "0"}), values({-56, 200}));
}

TEST_F(BitfieldCommandTest, OverflowWrapsUnlessItIsAskedOtherwise) {
  EXPECT_EQ(field({"SET", "u8", "0", "255", "INCRBY", "u8", "0", "10"}), values({0, 9}));
  EXPECT_EQ(field({"OVERFLOW", "SAT", "INCRBY", "u8", "0", "1000"}), values({255}));
  EXPECT_EQ(field({"OVERFLOW", "SAT", "SET", "i8", "8", "-1000", "GET", "i8", "8"}),
            values({0, -128}));
}

TEST_F(BitfieldCommandTest, AFailedOperationAnswersNull) {
  field({"SET", "u8", "0", "250"});
  EXPECT_EQ(field({"OVERFLOW", "FAIL", "INCRBY", "u8", "0", "10", "GET", "u8", "0"}),
            array({kNull, integer(250)}));
}

TEST_F(BitfieldCommandTest, OverflowHoldsForWhatFollows) {
  EXPECT_EQ(field({"SET", "u2", "0", "3", "INCRBY", "u2", "0", "1", "OVERFLOW", "SAT", "INCRBY",
                   "u2", "0", "9"}),
            values({0, 0, 3}));
}

TEST_F(BitfieldCommandTest, ReadsDoNotLengthenTheValue) {
  EXPECT_EQ(field({"GET", "u8", "1000"}), values({0}));
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0));
}

TEST_F(BitfieldCommandTest, WrongTypesAndOffsetsAreRefused) {
  for (const char* const type : {"u64", "i65", "u0", "x8", "8", ""}) {
    EXPECT_THAT(field({"GET", type, "0"}), StartsWith("-ERR Invalid bitfield type")) << type;
  }
  for (const char* const offset : {"-1", "x", "#-1", "99999999999999999999"}) {
    EXPECT_EQ(field({"GET", "u8", offset}), error(core::bitmap::kInvalidBitOffset)) << offset;
  }
  EXPECT_EQ(field({"OVERFLOW", "MAYBE", "GET", "u8", "0"}), error(kInvalidOverflow));
  EXPECT_EQ(field({"NOPE", "u8", "0"}), error(kSyntaxError));
}

TEST_F(BitfieldCommandTest, AFaultAnywhereChangesNothing) {
  EXPECT_THAT(field({"SET", "u8", "0", "1", "GET", "u99", "0"}), StartsWith("-ERR"));
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0));
}

TEST_F(BitfieldCommandTest, TheReadOnlyOneOnlyGets) {
  run({"SET", "k", "A"});
  EXPECT_EQ(run({"BITFIELD_RO", "k", "GET", "u8", "0"}), values({65}));
  EXPECT_EQ(run({"BITFIELD_RO", "k", "SET", "u8", "0", "1"}), error(kReadsOnly));
}

TEST_F(BitfieldCommandTest, AFilterIsNoBitField) {
  run({"BF.ADD", "k", "item"});
  EXPECT_THAT(field({"GET", "u8", "0"}), StartsWith("-WRONGTYPE"));
}

}  // namespace
}  // namespace server
