// SPDX-License-Identifier: MIT
#include "server/session/replayed_error.h"

#include <gtest/gtest.h>

#include <string>

#include "server/commands/keys/database_index.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

constexpr auto kOwn = CommandOrigin::kOwnJournal;
constexpr auto kForeign = CommandOrigin::kForeignJournal;

TEST(ReplayedErrorTest, FindsNoErrorInOtherReplies) {
  for (const char* reply :
       {"+OK\r\n", ":1\r\n", "$4\r\n-ERR\r\n", "*1\r\n:1\r\n", "*0\r\n", "_\r\n"}) {
    EXPECT_FALSE(find_error(kOwn, "SET", reply)) << reply;
    EXPECT_FALSE(find_error(kForeign, "SET", reply)) << reply;
  }
}

TEST(ReplayedErrorTest, EveryErrorInEffectsLosesData) {
  const auto error = find_error(kOwn, "SET", "-ERR no\r\n");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->text, "ERR no");
  EXPECT_TRUE(error->loses_data);
}

TEST(ReplayedErrorTest, OthersMayHaveFailedWhenTheyWereWritten) {
  EXPECT_FALSE(find_error(kForeign, "BF.ADD", "-ERR full\r\n")->loses_data);
  EXPECT_TRUE(find_error(kForeign, "BF.ADD", "-OOM no memory\r\n")->loses_data);
  EXPECT_TRUE(find_error(kForeign, "select", "-ERR no\r\n")->loses_data);
}

TEST(ReplayedErrorTest, MissingDatabaseLosesData) {
  for (const char* name : {"SELECT", "COPY", "MOVE", "SWAPDB"}) {
    const auto error = find_error(kForeign, name, encoded_error(kNotADatabase));
    EXPECT_TRUE(error->is_missing_database && error->loses_data) << name;
  }
  EXPECT_FALSE(find_error(kForeign, "COPY", "-ERR no\r\n")->is_missing_database);
}

TEST(ReplayedErrorTest, EffectsAreLookedInto) {
  const std::string reply = "*2\r\n:1\r\n*1\r\n-ERR full\r\n";
  const auto error = find_error(kOwn, "BF.MADD", reply);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->text, "ERR full");
  EXPECT_FALSE(find_error(kForeign, "BF.MADD", reply));
  // The bulk string in the reply looks like an error, but is not one.
  EXPECT_FALSE(find_error(kOwn, "MGET", "*1\r\n$6\r\n\r\n-ERR\r\n"));
}

TEST(ReplayedErrorTest, ElementsOfExecAreJudgedAlike) {
  const auto reply = read_reply("*2\r\n+OK\r\n-ERR no\r\n");
  ASSERT_TRUE(reply);
  EXPECT_TRUE(find_error(kOwn, "EXEC", *reply)->loses_data);
  EXPECT_FALSE(find_error(kForeign, "EXEC", *reply));
  EXPECT_FALSE(find_error(kForeign, "SET", reply->elements[1])->loses_data);
  EXPECT_FALSE(read_reply("*2\r\n+OK\r\n"));
}

}  // namespace
}  // namespace server
