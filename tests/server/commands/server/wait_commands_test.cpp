// SPDX-License-Identifier: MIT
#include <string_view>

#include "server/session/awaited_reply.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using WaitCommandsTest = CommandTest;

constexpr std::string_view kNoWholeNumber = "ERR value is not an integer or out of range";

TEST_F(WaitCommandsTest, WaitsThatCannotBeMeant) {
  EXPECT_EQ(run({"WAIT", "x", "0"}), error(kNoWholeNumber));
  EXPECT_EQ(run({"WAIT", "1", "x"}), error("ERR timeout is not an integer or out of range"));
  EXPECT_EQ(run({"WAIT", "1", "-1"}), error("ERR timeout is negative"));
  EXPECT_EQ(run({"WAITAOF", "2", "0", "0"}),
            error("ERR value is out of range, value must between 0 and 1"));
  EXPECT_EQ(run({"WAITAOF", "0", "-1", "0"}), error("ERR value is out of range, must be positive"));
  EXPECT_EQ(run({"WAIT", "0", "0"}), integer(0));
}

TEST_F(WaitCommandsTest, ALeaderAloneHasNoReplicasToNameOrWaitFor) {
  EXPECT_EQ(run({"ROLE"}), array({bulk("master"), integer(0), "*0\r\n"}));
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  EXPECT_TRUE(client_->session->awaited->can_be_unblocked());
  EXPECT_EQ(client_->session->awaited->deadline_us(), 0);
  EXPECT_EQ(client_->try_answer(), "");
}

// After a demotion, the replica offsets belong to the stream of another leader. They do not show
// whether earlier writes were replicated, so WAIT ends with an error.
TEST_F(WaitCommandsTest, DemotionEndsWaitWithAnError) {
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  run_as_other({"REPLICAOF", "127.0.0.1", "1"});
  run_as_other({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(client_->try_answer(),
            error("UNBLOCKED force unblock from blocking operation, instance state changed (master "
                  "-> replica?)"));
}

TEST_F(WaitCommandsTest, TheOwnLogIsWaitedForOnlyIfItIsOn) {
  EXPECT_EQ(run({"WAITAOF", "1", "0", "0"}),
            error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."));
  EXPECT_EQ(run({"WAITAOF", "0", "0", "0"}), array({integer(0), integer(0)}));
}

}  // namespace
}  // namespace server
