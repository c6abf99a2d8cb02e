// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/keyspace_access.h"

namespace server {
namespace {

class LcsCommandTest : public CommandTest {
 protected:
  LcsCommandTest() { run({"MSET", "a", "ohmytext", "b", "mynewtext"}); }
  static std::string range(int64_t first, int64_t last) {
    return array({integer(first), integer(last)});
  }
};

TEST_F(LcsCommandTest, AnswersTheSubsequenceOrItsLength) {
  EXPECT_EQ(run({"LCS", "a", "b"}), bulk("mytext"));
  EXPECT_EQ(run({"LCS", "a", "b", "LEN"}), integer(6));
  EXPECT_EQ(run({"LCS", "a", "none"}), bulk(""));
  EXPECT_EQ(run({"LCS", "none", "none", "LEN"}), integer(0));
  EXPECT_EQ(run({"LCS", "a", "a"}), bulk("ohmytext"));
}

TEST_F(LcsCommandTest, IdxTellsWhereTheRunsAre) {
  const std::string text = array({range(4, 7), range(5, 8)});
  const std::string my = array({range(2, 3), range(0, 1)});
  EXPECT_EQ(run({"LCS", "a", "b", "IDX"}),
            array({bulk("matches"), array({text, my}), bulk("len"), integer(6)}));
  const std::string long_text = array({range(4, 7), range(5, 8), integer(4)});
  EXPECT_EQ(run({"LCS", "a", "b", "IDX", "MINMATCHLEN", "4", "WITHMATCHLEN"}),
            array({bulk("matches"), array({long_text}), bulk("len"), integer(6)}));
}

TEST_F(LcsCommandTest, IdxIsAMapInResp3) {
  run({"HELLO", "3"});
  EXPECT_EQ(run({"LCS", "a", "none", "IDX"}),
            "%2\r\n" + bulk("matches") + "*0\r\n" + bulk("len") + integer(0));
}

TEST_F(LcsCommandTest, WrongTypesTakePrecedenceOverWrongOptions) {
  put_filter(keyspace_, "f");
  EXPECT_THAT(run({"LCS", "a", "f", "FOO"}), is_error("ERR", "string values"));
  EXPECT_EQ(run({"LCS", "a", "b", "FOO"}), error(kSyntaxError));
  EXPECT_EQ(run({"LCS", "a", "b", "MINMATCHLEN"}), error(kSyntaxError));
  EXPECT_EQ(run({"LCS", "a", "b", "MINMATCHLEN", "x"}), error(kNotAnInteger));
  EXPECT_THAT(run({"LCS", "a", "b", "IDX", "LEN"}), is_error("ERR", "IDX"));
}

TEST_F(LcsCommandTest, TablesBeyondTheSizeLimitAreRefused) {
  run({"SETRANGE", "a", "19999", "x"});
  run({"SETRANGE", "b", "19999", "x"});
  EXPECT_THAT(run({"LCS", "a", "b", "LEN"}), is_error("ERR", "proto-max-bulk-len"));
}

}  // namespace
}  // namespace server
