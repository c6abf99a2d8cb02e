// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "tests/support/info_test.h"

namespace server {
namespace {

using testing::MatchesRegex;

using ReplicationSectionTest = InfoTest;

TEST_F(ReplicationSectionTest, ALeaderWithoutReplicas) {
  EXPECT_EQ(field("replication", "role"), "master");
  EXPECT_EQ(field("replication", "connected_slaves"), "0");
  EXPECT_EQ(field("replication", "master_failover_state"), "no-failover");
  EXPECT_EQ(field("replication", "master_host"), "none");
  EXPECT_EQ(field("replication", "slave0"), "none");
}

TEST_F(ReplicationSectionTest, TheStreamHasItsIds) {
  EXPECT_THAT(field("replication", "master_replid"), MatchesRegex("[0-9a-f]{40}"));
  EXPECT_EQ(field("replication", "master_replid2"), std::string(40, '0'));
  EXPECT_EQ(field("replication", "second_repl_offset"), "-1");
}

TEST_F(ReplicationSectionTest, AnIdleBacklogKeepsNothing) {
  EXPECT_EQ(field("replication", "repl_backlog_active"), "0");
  EXPECT_EQ(field("replication", "repl_backlog_first_byte_offset"), "0");
  EXPECT_EQ(field("replication", "repl_backlog_histlen"), "0");
  EXPECT_EQ(number("replication", "repl_backlog_size"), 1 << 20);
}

TEST_F(ReplicationSectionTest, TheSizeOfTheBacklogFollowsItsOption) {
  EXPECT_EQ(run({"CONFIG", "SET", "repl-backlog-size", "2mb"}), kOk);
  EXPECT_EQ(number("replication", "repl_backlog_size"), 2 << 20);
}

TEST_F(ReplicationSectionTest, GoodReplicasAreCountedWhereWritesNeedThem) {
  EXPECT_EQ(field("replication", "min_slaves_good_slaves"), "none");
  EXPECT_EQ(run({"CONFIG", "SET", "min-replicas-to-write", "1"}), kOk);
  EXPECT_EQ(field("replication", "min_slaves_good_slaves"), "0");
  EXPECT_EQ(run({"CONFIG", "SET", "min-replicas-max-lag", "0"}), kOk);
  EXPECT_EQ(field("replication", "min_slaves_good_slaves"), "none");
}

}  // namespace
}  // namespace server
