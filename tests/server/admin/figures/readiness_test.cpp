// SPDX-License-Identifier: MIT
#include "server/admin/figures/readiness.h"

#include <gmock/gmock.h>

#include "server/cluster/permit_clock.h"
#include "tests/server/cluster/sample_topology.h"
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

class NodeReadinessTest : public CommandTest {
 protected:
  // 'a' leads, 'b' is its replica, 'd' belongs to nobody.
  void be(char own) {
    cluster_.publish(std::make_shared<cluster::View>(
        cluster::id_of(own), cluster::TopologyVersion{cluster::sample_topology(), 9},
        std::vector<std::string>{}));
  }
  void permit_for_ms(int64_t length_ms) {
    const int64_t now_us = cluster::permit_clock_us();
    cluster_.set_permit(now_us - 1, now_us + length_ms * 1000);
  }
};

TEST_F(NodeReadinessTest, ALeaderIsReadyWithAPermit) {
  cluster_.publish(std::make_shared<cluster::View>(cluster::id_of('a')));
  EXPECT_THAT(unready_cause(services_), HasSubstr("does not know"));
  be('a');
  EXPECT_THAT(unready_cause(services_), HasSubstr("no permit"));
  cluster_.set_service(cluster::Service::kHeld);
  permit_for_ms(60'000);
  EXPECT_THAT(unready_cause(services_), HasSubstr("former leader's permit"));
  cluster_.set_service(cluster::Service::kUp);
  EXPECT_EQ(unready_cause(services_), "");
  permit_for_ms(-1);
  EXPECT_THAT(unready_cause(services_), HasSubstr("no permit"));
}

TEST_F(NodeReadinessTest, OthersNeedNoPermit) {
  be('d');
  EXPECT_THAT(unready_cause(services_), HasSubstr("does not name"));
  be('b');
  EXPECT_EQ(unready_cause(services_), "");
  cluster_.publish(cluster::View::emulated(cluster::id_of('a')));
  EXPECT_EQ(unready_cause(services_), "");
}

}  // namespace
}  // namespace server::admin
