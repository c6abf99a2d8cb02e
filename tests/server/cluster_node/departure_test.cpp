// SPDX-License-Identifier: MIT
#include "server/cluster_node/departure.h"

#include <gtest/gtest.h>

#include "server/cluster/election/leader_part.h"
#include "tests/server/cluster/election/member_fixture.h"

namespace server::cluster {
namespace {

class DepartureTest : public MemberTest {
 protected:
  void lead_and_depart() {
    lead();
    departure_.emplace(*member_);
  }
  void step(int64_t us) {
    pass(us);
    departure_->step(now_us_);
  }
  void hand_over() {
    departure_->hand_over(now_us_, [this] { ++done_; });
    run();
  }
  void close_list() {
    departure_->close_list(now_us_, 1000, [this] { ++done_; });
    run();
  }

  std::optional<Departure> departure_;
  int done_ = 0;
};

TEST_F(DepartureTest, WithoutASuccessorNothingIsHandedOver) {
  lead_and_depart();
  facts_.replicas.clear();
  pass(0);
  hand_over();
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(all<HoldWrites>().empty());
}

TEST_F(DepartureTest, RedirectsForAMomentAfterAHandover) {
  constexpr int64_t kLingerUs = 500'000;
  lead_and_depart();
  hand_over();
  writes_held(1000);
  step(0);
  EXPECT_EQ(last<ChangeTopology>().topology.shard("s1")->leader, kB);
  commit(12);
  step(0);
  member_->successor_serves(now_us_, "s1", 8);
  step(0);
  step(kLingerUs - 1);
  EXPECT_EQ(done_, 0);
  step(1);
  EXPECT_EQ(done_, 1);
  step(kSecondUs);
  EXPECT_EQ(done_, 1);
}

TEST_F(DepartureTest, RedirectsWhenTheSuccessorServes) {
  constexpr int64_t kLingerUs = 500'000;
  lead_and_depart();
  hand_over();
  writes_held(1000);
  step(0);
  commit(12);
  step(Succession::kHoldUs - 1);
  member_->successor_serves(now_us_, "s1", 8);
  step(0);
  step(kLingerUs - 1);
  EXPECT_EQ(done_, 0);
  step(1);
  EXPECT_EQ(done_, 1);
}

TEST_F(DepartureTest, AHandoverThatFailsIsGivenUp) {
  constexpr int64_t kHandoverUs = 2'000'000;
  lead_and_depart();
  hand_over();
  step(kHandoverUs - 1);
  EXPECT_EQ(done_, 0);
  step(1);
  EXPECT_EQ(done_, 1);
}

TEST_F(DepartureTest, ARefusedHandoverIsTriedAgain) {
  lead_and_depart();
  facts_.replicas.push_back({kC, 1000, true});
  Topology three = member_->topology().topology;
  three.shard("s1")->members.push_back(kC);
  three.shard("s1")->insync.push_back(kC);
  see(three, 12);
  pass(0);
  facts_.replicas.pop_back();
  pass(0);
  ASSERT_EQ(last<ChangeTopology>().topology.shard("s1")->insync.size(), 2U) << "c leaves";
  hand_over();
  EXPECT_TRUE(all<HoldWrites>().empty());
  EXPECT_EQ(done_, 0);
  commit(13);
  step(0);
  run();
  EXPECT_EQ(all<HoldWrites>().size(), 1U);
}

TEST_F(DepartureTest, ACancelledHandoverIsTriedAgain) {
  lead_and_depart();
  hand_over();
  step(kSecondUs);
  ASSERT_EQ(all<ReleaseWrites>().size(), 1U);
  run();
  EXPECT_EQ(all<HoldWrites>().size(), 2U);
  EXPECT_EQ(done_, 0);
}

TEST_F(DepartureTest, WaitsUntilEtcdHasTheList) {
  lead_and_depart();
  facts_.replicas = {{kB, 999, true}};
  pass(0);
  close_list();
  step(kLastAckUs);
  EXPECT_EQ(done_, 0);
  commit(12);
  step(0);
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(member_->may_leave());
}

TEST_F(DepartureTest, WithoutEtcdItEndsAllTheSame) {
  lead_and_depart();
  facts_.replicas = {{kB, 999, true}};
  pass(0);
  close_list();
  step(kCloseListUs - 1);
  EXPECT_EQ(done_, 0);
  step(1);
  EXPECT_EQ(done_, 1);
  EXPECT_FALSE(member_->may_leave());
}

}  // namespace
}  // namespace server::cluster
