// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/base/process/server_state.h"
#include "server/commands/keys/database_index.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using DatabaseCommandsTest = KeyTest;

TEST_F(DatabaseCommandsTest, DbsizeCountsOneDatabase) {
  put("a", "1");
  put("b", "2");
  EXPECT_EQ(run({"DBSIZE"}), integer(2));
  run({"SELECT", "1"});
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

TEST_F(DatabaseCommandsTest, FlushdbEmptiesOneDatabaseFlushallEvery) {
  for (const char* mode : {"SYNC", "async"}) {
    put("a", "1");
    run({"COPY", "a", "a", "DB", "5"});
    EXPECT_EQ(run({"FLUSHDB", mode}), kOk);
    EXPECT_EQ(keyspace_.db_size(0), 0U);
    EXPECT_EQ(keyspace_.db_size(5), 1U);
    EXPECT_EQ(run({"FLUSHALL", mode}), kOk);
    EXPECT_EQ(keyspace_.db_size(5), 0U);
  }
  EXPECT_EQ(run({"FLUSHALL"}), kOk);
}

TEST_F(DatabaseCommandsTest, FlushRefusesUnknownModes) {
  put("a", "1");
  EXPECT_EQ(run({"FLUSHDB", "now"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"FLUSHALL", "SYNC", "ASYNC"}), error(protocol::kSyntaxError));
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

TEST_F(DatabaseCommandsTest, FlushedKeysCountAsChanges) {
  put("a", "1");
  put("b", "2");
  const uint64_t before = state_.changes;
  run({"FLUSHALL"});
  EXPECT_EQ(state_.changes, before + 2);
  run({"FLUSHALL"});
  EXPECT_EQ(state_.changes, before + 2);
}

TEST_F(DatabaseCommandsTest, SwapdbExchangesKeys) {
  put("a", "1");
  EXPECT_EQ(run({"SWAPDB", "0", "3"}), kOk);
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
  EXPECT_EQ(text_of("a", 3), "1");
  EXPECT_EQ(run({"SWAPDB", "3", "3"}), kOk);
  EXPECT_EQ(text_of("a", 3), "1");
}

TEST_F(DatabaseCommandsTest, SwapdbNamesTheIndexThatIsWrong) {
  EXPECT_THAT(run({"SWAPDB", "x", "y"}), is_error("ERR", "first DB"));
  EXPECT_THAT(run({"SWAPDB", "99", "y"}), is_error("ERR", "second DB"));
  EXPECT_THAT(run({"SWAPDB", "0", "4294967296"}), is_error("ERR", "second DB"));
  EXPECT_EQ(run({"SWAPDB", "99", "0"}), error(kNotADatabase));
  EXPECT_EQ(run({"SWAPDB", "0", "-1"}), error(kNotADatabase));
}

TEST_F(DatabaseCommandsTest, WatchersNoticeWhatTheyLoseOrGain) {
  put("a", "1");
  EXPECT_TRUE(watcher_notices("a", [&] { run({"SWAPDB", "0", "1"}); }));
  EXPECT_TRUE(watcher_notices("a", [&] { run({"SWAPDB", "0", "1"}); }));
  EXPECT_FALSE(watcher_notices("b", [&] { run({"SWAPDB", "0", "1"}); }));
  run({"SWAPDB", "0", "1"});
  EXPECT_TRUE(watcher_notices("a", [&] { run({"FLUSHDB"}); }));
  EXPECT_FALSE(watcher_notices("a", [&] { run({"FLUSHALL"}); }));
}

}  // namespace
}  // namespace server
