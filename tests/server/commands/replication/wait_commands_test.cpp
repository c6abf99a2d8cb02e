// SPDX-License-Identifier: MIT
#include "server/commands/replication/wait_commands.h"

#include <gmock/gmock.h>

#include <string_view>

#include "protocol/error_texts.h"
#include "server/session/awaited_reply.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using WaitCommandsTest = CommandTest;

TEST_F(WaitCommandsTest, WaitsThatCannotBeMeant) {
  EXPECT_EQ(run({"WAIT", "x", "0"}), error(kNotAnInteger));
  EXPECT_EQ(run({"WAIT", "1", "x"}), error(protocol::kTimeoutNotAnInteger));
  EXPECT_EQ(run({"WAIT", "1", "-1"}), error(protocol::kNegativeTimeout));
  EXPECT_THAT(run({"WAITAOF", "2", "0", "0"}), is_error("ERR", "between 0 and 1"));
  EXPECT_EQ(run({"WAITAOF", "0", "-1", "0"}), error(protocol::kNotPositive));
  EXPECT_EQ(run({"WAIT", "0", "0"}), integer(0));
}

TEST_F(WaitCommandsTest, ALeaderAloneHasNoReplicasToNameOrWaitFor) {
  EXPECT_EQ(run({"ROLE"}), array({bulk("master"), integer(0), "*0\r\n"}));
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  EXPECT_TRUE(client_->last_result.pending.reply->can_be_unblocked());
  EXPECT_EQ(client_->last_result.pending.reply->deadline_us(), 0);
  EXPECT_EQ(client_->try_answer(), "");
}

TEST_F(WaitCommandsTest, TheLongestTimeoutIsAllowed) {
  EXPECT_EQ(run({"WAIT", "1", "9223372036854775807"}), "");
  EXPECT_GT(client_->last_result.pending.reply->deadline_us(), clock_.monotonic_us());
}

// After a demotion, the replica offsets belong to the stream of another leader. They do not show
// whether earlier writes were replicated, so WAIT ends with an error.
TEST_F(WaitCommandsTest, DemotionEndsWaitWithAnError) {
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  run_as_other({"REPLICAOF", "127.0.0.1", "1"});
  run_as_other({"REPLICAOF", "NO", "ONE"});
  EXPECT_THAT(client_->try_answer(), is_error("UNBLOCKED", "state changed"));
}

TEST_F(WaitCommandsTest, TheOwnLogIsWaitedForOnlyIfItIsOn) {
  EXPECT_EQ(run({"WAITAOF", "1", "0", "0"}), error(kNoLogToWaitFor));
  EXPECT_EQ(run({"WAITAOF", "0", "0", "0"}), array({integer(0), integer(0)}));
}

}  // namespace
}  // namespace server
