// SPDX-License-Identifier: MIT
//
// Tests FAILOVER from its start to the handover, or to the point at which this server leads again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>

#include "server/base/metrics/statistics.h"
#include "server/commands/replication/replication_commands.h"
#include "server/dispatch/command_replayer.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/failover.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/error_matcher.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/played_leader.h"
#include "tests/support/reserved_port.h"

namespace server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ReplicaFailoverTest : public LeaderFixture {
 protected:
  ReplicaFailoverTest() {
    replica_controller_.start([this](CommandOrigin origin) {
      return std::make_unique<CommandReplayer>(services_, origin, &statistics_.stream());
    });
  }
  ~ReplicaFailoverTest() override { replica_controller_.stop(); }

  // Returns an online replica that can be a target of FAILOVER. It has not acknowledged the last
  // write yet.
  std::unique_ptr<Remote> online(uint16_t port) {
    auto replica = std::make_unique<Remote>(*this);
    replica->traits().address = "127.0.0.1";
    replica->traits().port = port;
    psync(*replica, replication_.offset());
    EXPECT_EQ(run({"SET", "a", "1"}), kOk);
    return replica;
  }
  // Calls drive_failover() until `replica` has acknowledged the whole stream, including the
  // leader's GETACK.
  void hand_over_to(Remote& replica) {
    await([&] {
      replica.client.run({"REPLCONF", "ACK", std::to_string(replication_.offset())});
      replica_controller_.drive_failover();
      return replica_controller_.failover_state() != Failover::State::kAwaitsSync;
    });
  }
  bool holds_writes_back() { return pause_.holds_back(kWrite, clock_.wall_ms()); }
  void await_end() {
    await([this] { return replica_controller_.failover_state() == Failover::State::kNone; });
    // The thread of the link holds apply_mutex() while it ends the failover. It first changes the
    // state and then resumes writes, so the test waits for the mutex.
    const std::scoped_lock settled(replication_.apply_mutex());
  }

  PlayedLeader heir_;
};

TEST_F(ReplicaFailoverTest, FailsWithoutReplicas) {
  EXPECT_THAT(run({"FAILOVER"}), is_error("ERR", "replicas"));
  EXPECT_FALSE(holds_writes_back());
}

TEST_F(ReplicaFailoverTest, AReplicaThatListensNowhereCannotLead) {
  const auto replica = online(0);
  EXPECT_THAT(run({"FAILOVER"}), is_error("ERR", "replicas"));
}

TEST_F(ReplicaFailoverTest, WritesAreHeldBackUntilItIsAborted) {
  const auto replica = online(heir_.port());
  EXPECT_EQ(run({"FAILOVER"}), kOk);
  EXPECT_TRUE(holds_writes_back());
  EXPECT_EQ(replica_controller_.failover_state(), Failover::State::kAwaitsSync);
  EXPECT_EQ(run({"FAILOVER", "ABORT"}), kOk);
  EXPECT_FALSE(holds_writes_back());
  EXPECT_FALSE(replication_.is_replica());
}

TEST_F(ReplicaFailoverTest, ThereIsOneAtATime) {
  const auto replica = online(heir_.port());
  EXPECT_EQ(run({"FAILOVER"}), kOk);
  EXPECT_THAT(run({"FAILOVER"}), is_error("ERR", "already"));
}

TEST_F(ReplicaFailoverTest, WithoutOneThereIsNothingToAbort) {
  EXPECT_THAT(run({"FAILOVER", "ABORT"}), is_error("ERR", "No failover"));
}

TEST_F(ReplicaFailoverTest, AcceptsNoReplicaDuringAFailover) {
  const auto replica = online(heir_.port());
  run({"FAILOVER"});
  Remote late(*this);
  EXPECT_EQ(psync(late, replication_.offset()), error(kNoSyncInFailover));
}

TEST_F(ReplicaFailoverTest, AsksASyncedReplicaToLead) {
  const auto replica = online(heir_.port());
  run({"FAILOVER"});
  hand_over_to(*replica);
  EXPECT_EQ(replica_controller_.failover_state(), Failover::State::kInProgress);
  EXPECT_TRUE(replication_.is_replica());
  EXPECT_TRUE(holds_writes_back());
  EXPECT_THAT(heir_.await_psync(), EndsWith(" FAILOVER"));
}

TEST_F(ReplicaFailoverTest, AHeirThatAcceptsLeads) {
  const auto replica = online(heir_.port());
  run({"FAILOVER"});
  hand_over_to(*replica);
  heir_.await_psync();
  heir_.say("+CONTINUE " + std::string(40, 'b') + "\r\n");
  await_end();
  EXPECT_FALSE(holds_writes_back());
  EXPECT_TRUE(replication_.is_replica());
  EXPECT_EQ(replication_.ids().id, std::string(40, 'b'));
  EXPECT_THAT(run({"CONFIG", "GET", "replicaof"}),
              HasSubstr("127.0.0.1 " + std::to_string(heir_.port())));
}

TEST_F(ReplicaFailoverTest, ANewLinkToTheHeirAsksForTheStreamAlone) {
  const auto replica = online(heir_.port());
  run({"FAILOVER"});
  hand_over_to(*replica);
  heir_.await_psync();
  heir_.say("+CONTINUE\r\n");
  await_end();
  heir_.hang_up();
  EXPECT_EQ(heir_.await_psync().find("FAILOVER"), std::string::npos);
}

TEST_F(ReplicaFailoverTest, AHeirThatRefusesGivesTheRoleBack) {
  const auto replica = online(heir_.port());
  run({"FAILOVER"});
  hand_over_to(*replica);
  heir_.await_psync();
  heir_.say("-ERR another history\r\n");
  await_end();
  EXPECT_FALSE(replication_.is_replica());
  EXPECT_FALSE(holds_writes_back());
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
}

TEST_F(ReplicaFailoverTest, AHeirThatIsGoneGivesTheRoleBack) {
  const ReservedPort gone;
  const auto replica = online(gone.port());
  run({"FAILOVER"});
  hand_over_to(*replica);
  await_end();
  EXPECT_FALSE(replication_.is_replica());
  EXPECT_FALSE(holds_writes_back());
}

TEST_F(ReplicaFailoverTest, AnAbortTakesTheRoleBack) {
  const auto replica = online(heir_.port());
  run({"FAILOVER"});
  hand_over_to(*replica);
  heir_.await_psync();
  EXPECT_EQ(run({"FAILOVER", "ABORT"}), kOk);
  EXPECT_FALSE(replication_.is_replica());
  EXPECT_FALSE(holds_writes_back());
}

TEST_F(ReplicaFailoverTest, TheTimeoutEndsIt) {
  const auto replica = online(heir_.port());
  EXPECT_EQ(run({"FAILOVER", "TIMEOUT", "100"}), kOk);
  replica_controller_.drive_failover();
  EXPECT_EQ(replica_controller_.failover_state(), Failover::State::kAwaitsSync);
  advance_ms(101);
  replica_controller_.drive_failover();
  EXPECT_EQ(replica_controller_.failover_state(), Failover::State::kNone);
  EXPECT_FALSE(replication_.is_replica());
  EXPECT_FALSE(holds_writes_back());
}

TEST_F(ReplicaFailoverTest, WithForceTheTimeoutHandsOver) {
  const auto replica = online(heir_.port());
  EXPECT_EQ(
      run({"FAILOVER", "TO", "127.0.0.1", std::to_string(heir_.port()), "FORCE", "TIMEOUT", "100"}),
      kOk);
  advance_ms(101);
  replica_controller_.drive_failover();
  EXPECT_EQ(replica_controller_.failover_state(), Failover::State::kInProgress);
  EXPECT_THAT(heir_.await_psync(), EndsWith(" FAILOVER"));
}

}  // namespace
}  // namespace server
