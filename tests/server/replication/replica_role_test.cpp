// SPDX-License-Identifier: MIT
//
// Tests requests that a replica rejects, and changes of its role: a promotion, and a switch to
// another leader.
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "server/base/config/config.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/availability.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/replica_fixture.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReplicaRoleTest : public ReplicaFixture {
 protected:
  // Makes the server a replica, which receives the key `a` from its leader. Returns the offset
  // after the SET of this key and the GETACK that follows.
  size_t follow_with_a_key() {
    const std::string set = command({"SET", "a", "1"});
    begin_stream(kEmptySnapshot, 100);
    played_.say(set);
    await_applied(100 + set.size());
    return 100 + set.size() + command({"REPLCONF", "GETACK", "*"}).size();
  }
  std::string commit_like_sentinel(const std::string& host, const std::string& port) {
    run({"MULTI"});
    run({"SLAVEOF", host, port});
    run({"CONFIG", "REWRITE"});
    run({"CLIENT", "KILL", "TYPE", "normal"});
    return run({"EXEC"});
  }

  const std::string kReadOnly = error(kReplicaIsReadOnly);
  const std::string kMasterDown = error(kLinkIsDown);
};

TEST_F(ReplicaRoleTest, WritesOfClientsAreRefused) {
  follow_with_a_key();
  EXPECT_EQ(run({"SET", "b", "1"}), kReadOnly);
  EXPECT_EQ(run({"DEL", "a"}), kReadOnly);
  EXPECT_EQ(run({"BF.ADD", "f", "x"}), kReadOnly);
  EXPECT_EQ(run({"FLUSHALL"}), kReadOnly);
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
}

TEST_F(ReplicaRoleTest, ATransactionThatWritesIsRefused) {
  follow_with_a_key();
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "b", "1"}), kReadOnly);
  EXPECT_THAT(run({"EXEC"}), StartsWith("-EXECABORT"));
}

TEST_F(ReplicaRoleTest, WritableReplicaAcceptsWritesUntilReadOnly) {
  follow_with_a_key();
  run({"CONFIG", "SET", "replica-read-only", "no"});
  EXPECT_EQ(run({"SET", "own", "1"}), kOk);
  run({"CONFIG", "SET", "replica-read-only", "yes"});
  EXPECT_EQ(run({"SET", "own", "2"}), kReadOnly);
}

TEST_F(ReplicaRoleTest, StaleDataAreServedOnlyWhenTheyMayBe) {
  follow_with_a_key();
  run({"CONFIG", "SET", "replica-serve-stale-data", "no"});
  EXPECT_EQ(run({"GET", "a"}), bulk("1")) << "while the link is up";
  played_.hang_up();
  await([this] { return run({"GET", "a"}) == kMasterDown; });
  EXPECT_EQ(run({"PING"}), kMasterDown);
  EXPECT_THAT(run({"INFO"}), StartsWith("$"));
  EXPECT_THAT(run({"ROLE"}), HasSubstr("slave"));
  run({"CONFIG", "SET", "replica-serve-stale-data", "yes"});
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
}

TEST_F(ReplicaRoleTest, TheSameLeaderOnceMoreIsAnswered) {
  ask_to_follow(played_);
  EXPECT_EQ(run({"REPLICAOF", "127.0.0.1", std::to_string(played_.port())}),
            "+OK Already connected to specified master\r\n");
}

TEST_F(ReplicaRoleTest, APromotedReplicaKeepsItsDataAndTakesWrites) {
  follow_with_a_key();
  EXPECT_EQ(run({"REPLICAOF", "NO", "ONE"}), kOk);
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(run({"SET", "b", "2"}), kOk);
  EXPECT_EQ(info("replication", "role"), "master");
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk("1"), bulk("2")}));
}

TEST_F(ReplicaRoleTest, PromotedReplicaIgnoresItsOldLeader) {
  follow_with_a_key();
  run({"REPLICAOF", "NO", "ONE"});
  const uint64_t end = replication_.offset();
  (void)played_.try_to_say(command({"SET", "late", "4"}));
  // After the disconnect, the thread of the link does not read the bytes that the old leader sends.
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(run({"GET", "late"}), kNull);
  EXPECT_EQ(replication_.offset(), end);
}

TEST_F(ReplicaRoleTest, TheNextLeaderIsAskedToContinue) {
  const size_t end = follow_with_a_key();
  PlayedLeader next;
  ask_to_follow(next);
  EXPECT_EQ(next.await_psync(), fmt::format("PSYNC {} {}", played_.kId, end + 1));
  const std::string set = command({"SET", "b", "2"});
  next.say("+CONTINUE " + std::string(40, 'b') + "\r\n" + set +
           command({"REPLCONF", "GETACK", "*"}));
  EXPECT_TRUE(next.await_ack(end + set.size()));
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk("1"), bulk("2")}));
  EXPECT_EQ(info("replication", "master_replid"), std::string(40, 'b'));
  EXPECT_EQ(replica_controller_.figures().full_syncs, 1U);
  EXPECT_EQ(replica_controller_.figures().partial_syncs, 1U);
}

TEST_F(ReplicaRoleTest, SentinelsTransactionMakesAReplica) {
  EXPECT_THAT(commit_like_sentinel("127.0.0.1", std::to_string(played_.port())),
              StartsWith("*3\r\n" + kOk + error(kNoConfigFile)));
  EXPECT_EQ(info("replication", "role"), "slave");
  EXPECT_THAT(played_.await_psync(), StartsWith("PSYNC"));
}

TEST_F(ReplicaRoleTest, SentinelsTransactionMakesALeader) {
  follow_with_a_key();
  EXPECT_THAT(commit_like_sentinel("NO", "ONE"), StartsWith("*3\r\n" + kOk + error(kNoConfigFile)));
  EXPECT_EQ(info("replication", "role"), "master");
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
  EXPECT_EQ(run({"SET", "a", "2"}), kOk);
}

TEST_F(ReplicaRoleTest, TheLeaderThatTheConfigurationNamesIsFollowed) {
  config_.replace(OptionId::kReplicaOf, "127.0.0.1 " + std::to_string(played_.port()));
  ReplicaController replica_controller(
      {{{config_, clock_, keyspace_, journal_, disk_, state_}, durability_},
       replication_,
       clients_},
      leader_, pause_);
  replica_controller.start([this](CommandOrigin origin) {
    return std::make_unique<CommandReplayer>(services_, origin, &statistics_.stream());
  });
  EXPECT_THAT(played_.await_psync(), StartsWith("PSYNC"));
  played_.full_resync(kEmptySnapshot);
  await([&] { return replica_controller.figures().state == ReplicaLinkState::kConnected; });
}

}  // namespace
}  // namespace server
