// SPDX-License-Identifier: MIT
#include "server/admin/figures/readiness.h"

#include <gmock/gmock.h>

#include "tests/support/command_test.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;

class ReadinessTest : public CommandTest {};

TEST_F(ReadinessTest, ALeaderIsReadyOnceItHasLoaded) {
  EXPECT_EQ(unready_cause(services_), "");
  state_.availability.begin(Availability::kLoading);
  EXPECT_THAT(unready_cause(services_), HasSubstr("loading"));
  state_.availability.end(Availability::kLoading);
  EXPECT_EQ(unready_cause(services_), "");
}

TEST_F(ReadinessTest, AReplicaWithoutItsLeadersDataIsNotReady) {
  EXPECT_EQ(run({"REPLICAOF", "127.0.0.1", "1"}), kOk);
  EXPECT_THAT(unready_cause(services_), HasSubstr("has not got"));
  EXPECT_EQ(run({"REPLICAOF", "NO", "ONE"}), kOk);
  EXPECT_EQ(unready_cause(services_), "");
}

}  // namespace
}  // namespace server::admin
