// SPDX-License-Identifier: MIT
//
// Tests which commands a server rejects while it loads, while it is a replica, or while it has too
// few replicas.
#include <gmock/gmock.h>

#include "server/base/process/availability.h"
#include "server/base/process/server_state.h"
#include "server/commands/connection/transaction_commands.h"
#include "server/durability/durability.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class AvailabilityTest : public CommandTest {
 protected:
  const std::string kQueued = "+QUEUED\r\n";
  const std::string kReadOnly = error(kReplicaIsReadOnly);
  const std::string kMasterDown = error(kLinkIsDown);
  const std::string kTooFew = error(kNotEnoughReplicas);
  const std::string kLoadingText = error(kServerIsLoading);

  void begin(Availability::Trouble trouble) { durability_.availability.begin(trouble); }
  void end(Availability::Trouble trouble) { durability_.availability.end(trouble); }
};

TEST_F(AvailabilityTest, AReadOnlyReplicaRefusesWritesAlone) {
  begin(Availability::kReadOnlyReplica);
  EXPECT_EQ(run({"SET", "a", "1"}), kReadOnly);
  EXPECT_EQ(run({"BF.ADD", "f", "x"}), kReadOnly);
  EXPECT_EQ(run({"GET", "a"}), kNull);
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"SET", "a", "1"}), kReadOnly);
  EXPECT_EQ(run({"EXEC"}), error(kTransactionDiscarded));
}

TEST_F(AvailabilityTest, ATransactionQueuedBeforeIsRefusedAsAWhole) {
  run({"MULTI"});
  EXPECT_EQ(run({"SET", "a", "1"}), kQueued);
  begin(Availability::kReadOnlyReplica);
  EXPECT_THAT(run({"EXEC"}), is_error("EXECABORT", kReplicaIsReadOnly));
  run({"MULTI"});
  EXPECT_EQ(run({"GET", "a"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), array({kNull}));
}

TEST_F(AvailabilityTest, AStaleReplicaServesOnlyWhatMayBeStale) {
  begin(Availability::kStaleReplica);
  EXPECT_EQ(run({"GET", "a"}), kMasterDown);
  EXPECT_EQ(run({"PING"}), kMasterDown);
  EXPECT_TRUE(run({"INFO"}).starts_with("$"));
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"GET", "a"}), kMasterDown);
  run({"DISCARD"});
  run({"MULTI"});
  EXPECT_EQ(run({"UNWATCH"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), array({kOk}));
}

TEST_F(AvailabilityTest, AQueueThatMayNotBeStaleIsRefusedWhenItRuns) {
  run({"MULTI"});
  EXPECT_EQ(run({"GET", "a"}), kQueued);
  begin(Availability::kStaleReplica);
  EXPECT_THAT(run({"EXEC"}), is_error("EXECABORT", "MASTERDOWN"));
}

TEST_F(AvailabilityTest, AQueueIsRefusedWhileDataIsLoaded) {
  run({"MULTI"});
  EXPECT_EQ(run({"GET", "a"}), kQueued);
  begin(Availability::kLoading);
  EXPECT_THAT(run({"EXEC"}), is_error("EXECABORT", "LOADING"));
  run({"MULTI"});
  EXPECT_EQ(run({"UNWATCH"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), array({kOk}));
}

TEST_F(AvailabilityTest, TooFewReplicasRefuseWritesAlone) {
  begin(Availability::kTooFewReplicas);
  EXPECT_EQ(run({"SET", "a", "1"}), kTooFew);
  EXPECT_EQ(run({"GET", "a"}), kNull);
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

TEST_F(AvailabilityTest, TheReasonsComeInTheOrderOfRedis) {
  for (const auto trouble : {Availability::kLoading, Availability::kStaleReplica,
                             Availability::kReadOnlyReplica, Availability::kTooFewReplicas}) {
    begin(trouble);
  }
  EXPECT_EQ(run({"SET", "a", "1"}), kTooFew);
  end(Availability::kTooFewReplicas);
  EXPECT_EQ(run({"SET", "a", "1"}), kReadOnly);
  EXPECT_EQ(run({"GET", "a"}), kMasterDown);
  end(Availability::kReadOnlyReplica);
  end(Availability::kStaleReplica);
  EXPECT_EQ(run({"SET", "a", "1"}), kLoadingText);
}

TEST_F(AvailabilityTest, AReplayIsNotRefused) {
  begin(Availability::kReadOnlyReplica);
  begin(Availability::kStaleReplica);
  begin(Availability::kTooFewReplicas);
  begin(Availability::kLoading);
  client_->session->origin = CommandOrigin::kOwnJournal;
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
}

}  // namespace
}  // namespace server
