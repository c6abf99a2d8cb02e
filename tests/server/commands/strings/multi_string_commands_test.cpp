// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "protocol/error_texts.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/keyspace_access.h"

namespace server {
namespace {

using MultiStringCommandsTest = CommandTest;

TEST_F(MultiStringCommandsTest, MgetAnswersNullForWhatIsNoString) {
  put_filter(keyspace_, "f");
  EXPECT_EQ(run({"MSET", "a", "1", "b", "two"}), kOk);
  EXPECT_EQ(run({"MGET", "a", "none", "f", "b", "a"}),
            array({bulk("1"), kNull, kNull, bulk("two"), bulk("1")}));
}

TEST_F(MultiStringCommandsTest, MsetTakesPairsOnly) {
  EXPECT_EQ(run({"MSET", "a", "1", "b"}), error(protocol::wrong_arity("mset")));
  EXPECT_EQ(run({"MSETNX", "a", "1", "b"}), error(protocol::wrong_arity("msetnx")));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(MultiStringCommandsTest, MsetClearsExpiriesAndItsLastValueCounts) {
  run({"SETEX", "a", "5", "1"});
  EXPECT_EQ(run({"MSET", "a", "2", "a", "3"}), kOk);
  EXPECT_EQ(run({"GET", "a"}), bulk("3"));
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(MultiStringCommandsTest, MsetnxStoresAllOrNothing) {
  EXPECT_EQ(run({"MSETNX", "a", "1", "b", "2"}), integer(1));
  EXPECT_EQ(run({"MSETNX", "c", "1", "b", "3"}), integer(0));
  EXPECT_EQ(run({"MGET", "a", "b", "c"}), array({bulk("1"), bulk("2"), kNull}));
}

TEST_F(MultiStringCommandsTest, MsetnxSeesNoExpiredKey) {
  run({"PSETEX", "a", "5", "1"});
  advance_ms(6);
  EXPECT_EQ(run({"MSETNX", "a", "2"}), integer(1));
}

TEST_F(MultiStringCommandsTest, BigValuesArriveWhole) {
  const std::string big(100'000, 'b');
  EXPECT_EQ(run({"MSET", "a", big, "b", "s"}), kOk);
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk(big), bulk("s")}));
}

TEST_F(MultiStringCommandsTest, MsetexSetsAllKeysWithOneExpiry) {
  EXPECT_EQ(run({"MSETEX", "2", "a", "1", "b", "2", "EX", "10"}), integer(1));
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk("1"), bulk("2")}));
  EXPECT_EQ(run({"TTL", "b"}), integer(10));
  EXPECT_EQ(run({"MSETEX", "1", "a", "3", "KEEPTTL"}), integer(1));
  EXPECT_EQ(run({"TTL", "a"}), integer(10));
  EXPECT_EQ(run({"MSETEX", "1", "a", "4"}), integer(1));
  EXPECT_EQ(run({"TTL", "a"}), integer(-1));
  EXPECT_EQ(run({"MSETEX", "1", "a", "5", "px", "1500"}), integer(1));
  EXPECT_EQ(run({"PTTL", "a"}), integer(1500));
  EXPECT_EQ(run({"MSETEX", "2", "a", "6", "a", "7"}), integer(1));
  EXPECT_EQ(run({"GET", "a"}), bulk("7"));
}

TEST_F(MultiStringCommandsTest, MsetexSetsAllKeysOrNone) {
  run({"SET", "a", "old"});
  EXPECT_EQ(run({"MSETEX", "2", "b", "1", "a", "1", "NX"}), integer(0));
  EXPECT_EQ(run({"MSETEX", "2", "a", "1", "b", "1", "XX"}), integer(0));
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk("old"), kNull}));
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "XX", "EX", "5"}), integer(1));
  EXPECT_EQ(run({"MSETEX", "2", "b", "1", "c", "1", "EX", "5", "NX"}), integer(1));
}

TEST_F(MultiStringCommandsTest, MsetexRefusesWhatMakesNoSense) {
  const std::string syntax = error(kSyntaxError);
  EXPECT_EQ(run({"MSETEX", "1", "a"}), error(protocol::wrong_arity("msetex")));
  for (const char* count : {"0", "-1", "x", "2147483648", "9223372036854775808"}) {
    EXPECT_THAT(run({"MSETEX", count, "a", "1"}), is_error("ERR", "numkeys")) << count;
  }
  for (const char* count : {"2", "3", "2147483647"}) {
    EXPECT_THAT(run({"MSETEX", count, "a", "1", "b"}), is_error("ERR", "key-value pairs")) << count;
  }
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "nonsense"}), syntax);
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "NX", "XX"}), syntax);
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "EX", "1", "PX", "1"}), syntax);
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "KEEPTTL", "PX", "1"}), syntax);
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "EX"}), syntax);
  EXPECT_EQ(run({"MSETEX", "1", "a", "1", "EX", "0"}), error(protocol::invalid_expiry("msetex")));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(MultiStringCommandsTest, MsetexIsJournalledAsGroupOfKnownCommands) {
  journal_.set_active(true);
  run({"MSETEX", "2", "a", "1", "b", "2", "PXAT", "1800000000000"});
  std::string taken;
  journal_.take(taken);
  EXPECT_EQ(taken,
            "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$5\r\nMULTI\r\n"
            "*5\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n$4\r\nPXAT\r\n$13\r\n1800000000000\r\n"
            "*5\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n$4\r\nPXAT\r\n$13\r\n1800000000000\r\n"
            "*1\r\n$4\r\nEXEC\r\n");
}

}  // namespace
}  // namespace server
