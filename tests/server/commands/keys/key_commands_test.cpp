// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "core/keyspace/expiry_index.h"
#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/base/process/memory_monitor.h"
#include "server/commands/keys/database_index.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"
#include "server/session/session.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using KeyCommandsTest = KeyTest;

TEST_F(KeyCommandsTest, DelAndUnlinkCountWhatExisted) {
  put("a", "1");
  put("b", std::string(100'000, 'x'));
  put_filter("f", "item");
  EXPECT_EQ(run({"DEL", "a", "a", "none"}), integer(1));
  EXPECT_EQ(run({"UNLINK", "b", "f"}), integer(2));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(KeyCommandsTest, ExpiredKeysAreNeitherDeletedNorFound) {
  put("a", "1");
  run({"PEXPIRE", "a", "10"});
  advance_ms(11);
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
  EXPECT_EQ(run({"TYPE", "a"}), "+none\r\n");
  EXPECT_EQ(run({"DEL", "a"}), integer(0));
  EXPECT_EQ(keyspace_.expiry_statistics().expired.load(), 1U);
}

TEST_F(KeyCommandsTest, ExistsAndTouchCountEachMention) {
  put("a", "1");
  EXPECT_EQ(run({"EXISTS", "a", "a", "b"}), integer(2));
  EXPECT_EQ(run({"TOUCH", "a", "a", "b"}), integer(2));
}

TEST_F(KeyCommandsTest, OnlyTouchChangesTheAccessTime) {
  put("a", "1");
  advance_ms(5000);
  run({"EXISTS", "a"});
  run({"TYPE", "a"});
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(5));
  client_->session->client->no_touch = true;
  run({"TOUCH", "a"});
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(0));
}

TEST_F(KeyCommandsTest, TypeNamesFiltersAsTheModuleDoes) {
  put("a", "1");
  put_filter("f", "item");
  EXPECT_EQ(run({"TYPE", "a"}), "+string\r\n");
  EXPECT_EQ(run({"TYPE", "f"}), "+MBbloom--\r\n");
}

TEST_F(KeyCommandsTest, RenameTakesValueAndExpiryAlong) {
  put("a", "1");
  put("b", "2");
  run({"EXPIRE", "a", "100"});
  EXPECT_EQ(run({"RENAME", "a", "b"}), kOk);
  EXPECT_EQ(text_of("b"), "1");
  EXPECT_EQ(run({"TTL", "b"}), integer(100));
  EXPECT_EQ(run({"RENAME", "a", "b"}), error(kNoSuchKey));
  EXPECT_EQ(run({"RENAME", "b", "b"}), kOk);
}

TEST_F(KeyCommandsTest, RenamenxLeavesATakenNameAlone) {
  put("a", "1");
  put("b", "2");
  EXPECT_EQ(run({"RENAMENX", "a", "b"}), integer(0));
  EXPECT_EQ(run({"RENAMENX", "a", "a"}), integer(0));
  EXPECT_EQ(run({"RENAMENX", "x", "a"}), error(kNoSuchKey));
  EXPECT_EQ(run({"RENAMENX", "a", "c"}), integer(1));
  EXPECT_EQ(text_of("b"), "2");
}

TEST_F(KeyCommandsTest, RenamenxTakesTheNameOfAnExpiredKey) {
  put("a", "1");
  put("b", "2");
  run({"PEXPIRE", "b", "10"});
  advance_ms(11);
  EXPECT_EQ(run({"RENAMENX", "a", "b"}), integer(1));
  EXPECT_EQ(run({"TTL", "b"}), integer(-1));
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(KeyCommandsTest, CopyKeepsExpiryAndReplacesOnlyOnRequest) {
  put("a", "1");
  put("b", "2");
  run({"EXPIRE", "a", "100"});
  EXPECT_EQ(run({"COPY", "a", "b"}), integer(0));
  EXPECT_EQ(run({"COPY", "a", "b", "REPLACE"}), integer(1));
  EXPECT_EQ(run({"TTL", "b"}), integer(100));
  EXPECT_EQ(run({"COPY", "none", "b", "REPLACE"}), integer(0));
  EXPECT_EQ(text_of("b"), "1");
}

TEST_F(KeyCommandsTest, CopyReachesOtherDatabases) {
  put("a", "1");
  EXPECT_EQ(run({"COPY", "a", "a", "db", "3"}), integer(1));
  EXPECT_EQ(run({"COPY", "a", "a", "DB", "3"}), integer(0));
  EXPECT_EQ(text_of("a", 3), "1");
  EXPECT_EQ(run({"COPY", "a", "a", "DB", "16"}), error(kNotADatabase));
  EXPECT_EQ(run({"COPY", "a", "a", "DB", "x"}), error(protocol::kNotAnInteger));
  EXPECT_EQ(run({"COPY", "a", "b", "DB"}), error(protocol::kSyntaxError));
  EXPECT_THAT(run({"COPY", "a", "a", "DB", "0"}), is_error("ERR", "same"));
}

TEST_F(KeyCommandsTest, CopiedFilterIsADeepCopy) {
  put_filter("f", "item");
  EXPECT_EQ(run({"COPY", "f", "g"}), integer(1));
  const core::UnlimitedMemory budget;
  entry_of("f")->filter().add("later", budget);
  EXPECT_TRUE(entry_of("g")->filter().may_contain("item"));
  EXPECT_FALSE(entry_of("g")->filter().may_contain("later"));
}

TEST_F(KeyCommandsTest, BigCopyBeyondMaxmemoryIsRefused) {
  put("big", std::string(size_t{4} << 20, 'x'));
  // The memory limit is 1 MiB above the used memory. So COPY starts, but its copy of 4 MiB does not
  // fit.
  memory_.set_limit(memory_.refresh() + (size_t{1} << 20));
  EXPECT_EQ(run({"COPY", "big", "b"}), error(kOutOfMemory));
  EXPECT_EQ(entry_of("b"), nullptr);
}

TEST_F(KeyCommandsTest, MoveNeedsAFreeNameInAnotherDatabase) {
  put("a", "1");
  run({"EXPIRE", "a", "100"});
  EXPECT_THAT(run({"MOVE", "a", "0"}), is_error("ERR", "same"));
  EXPECT_EQ(run({"MOVE", "a", "99"}), error(kNotADatabase));
  EXPECT_EQ(run({"MOVE", "a", "4294967296"}), error(kDatabaseIndexRange));
  EXPECT_EQ(run({"MOVE", "none", "1"}), integer(0));
  EXPECT_EQ(run({"MOVE", "a", "1"}), integer(1));
  EXPECT_EQ(entry_of("a"), nullptr);
  EXPECT_EQ(keyspace_.expires_count(1), 1U);
  put("a", "2");
  EXPECT_EQ(run({"MOVE", "a", "1"}), integer(0));
  EXPECT_EQ(text_of("a", 1), "1");
}

TEST_F(KeyCommandsTest, WatchersOfEveryTouchedKeyNotice) {
  put("a", "1");
  EXPECT_TRUE(watcher_notices("a", [&] { run({"RENAME", "a", "b"}); }));
  EXPECT_TRUE(watcher_notices("a", [&] { run({"RENAME", "b", "a"}); }));
  EXPECT_TRUE(watcher_notices("c", [&] { run({"COPY", "a", "c"}); }));
  EXPECT_FALSE(watcher_notices("a", [&] { run({"COPY", "a", "d"}); }));
  EXPECT_FALSE(watcher_notices("c", [&] { run({"COPY", "a", "c"}); }));
  EXPECT_TRUE(watcher_notices("c", [&] { run({"MOVE", "c", "1"}); }));
  run_as_other({"SELECT", "1"});
  EXPECT_TRUE(watcher_notices("a", [&] { run({"MOVE", "a", "1"}); }));
  put("c", "2");
  EXPECT_TRUE(watcher_notices("c", [&] { run({"COPY", "c", "c", "DB", "1", "REPLACE"}); }));
  EXPECT_FALSE(watcher_notices("c", [&] { run({"DEL", "c"}); }));
}

TEST_F(KeyCommandsTest, KeysMoveAndCopyInsideExec) {
  put("a", "1");
  run({"MULTI"});
  run({"COPY", "a", "b", "DB", "1"});
  run({"MOVE", "a", "1"});
  run({"RENAME", "a", "c"});
  EXPECT_EQ(run({"EXEC"}), array({integer(1), integer(1), error(kNoSuchKey)}));
  EXPECT_EQ(keyspace_.db_size(1), 2U);
}

}  // namespace
}  // namespace server
