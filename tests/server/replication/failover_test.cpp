// SPDX-License-Identifier: MIT
#include "server/replication/failover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace server {
namespace {

using Decided = Failover::Decision::Kind;
using State = Failover::State;
using ::testing::HasSubstr;

constexpr int64_t kMsUs = 1000;
const Failover::Address kFirstAddress{"10.0.0.1", 6379};
const Failover::Address kSecondAddress{"10.0.0.2", 6379};

class FailoverTest : public ::testing::Test {
 protected:
  std::string begin(const Failover::Request& request, bool is_replica = false) {
    const auto begun = failover_.begin(request, is_replica, replicas_, now_);
    return begun ? "" : begun.error().message;
  }
  void begin_quietly(const Failover::Request& request) {
    ASSERT_EQ(begin(request), "");
    failover_.record_writes_ended(failover_.attempt());
  }
  Failover::Decision decide(uint64_t offset = 100) {
    return failover_.decide(offset, replicas_, now_);
  }

  Failover failover_;
  std::vector<Failover::Candidate> replicas_{{kFirstAddress, true, 99}, {kSecondAddress, true, 50}};
  int64_t now_ = 1'000'000;
};

TEST_F(FailoverTest, RejectsInvalidStarts) {
  EXPECT_THAT(begin({}, true), HasSubstr("is a replica"));
  EXPECT_THAT(begin({std::nullopt, true, 10}), HasSubstr("force option"));
  EXPECT_THAT(begin({kFirstAddress, true, 0}), HasSubstr("force option"));
  EXPECT_THAT(begin({Failover::Address{"10.0.0.1", 1}, false, 0}), HasSubstr("not a replica"));
  replicas_[1].is_online = false;
  EXPECT_THAT(begin({kSecondAddress, false, 0}), HasSubstr("not online"));
  replicas_.clear();
  EXPECT_THAT(begin({}), HasSubstr("connected replicas"));
  EXPECT_EQ(failover_.state(), State::kNone);
}

TEST_F(FailoverTest, OnlyOneAtATime) {
  EXPECT_EQ(begin({}), "");
  EXPECT_THAT(begin({}), HasSubstr("already in progress"));
  failover_.hand_over();
  EXPECT_THAT(begin({}), HasSubstr("already in progress"));
  failover_.end();
  EXPECT_EQ(begin({}), "");
}

TEST_F(FailoverTest, AnyReplicaThatHasAll) {
  begin_quietly({});
  EXPECT_EQ(decide().kind, Decided::kWait);
  replicas_[1].acked = 100;
  EXPECT_EQ(decide().kind, Decided::kHandOver);
  EXPECT_EQ(decide().target, kSecondAddress);
  EXPECT_EQ(decide(101).kind, Decided::kWait);
  replicas_[1].is_online = false;
  EXPECT_EQ(decide().kind, Decided::kWait);
}

TEST_F(FailoverTest, OnlyTheTargetWhenThereIsOne) {
  begin_quietly({kFirstAddress, false, 0});
  replicas_[1].acked = 100;
  EXPECT_EQ(decide().kind, Decided::kWait);
  replicas_[0].acked = 100;
  EXPECT_EQ(decide().target, kFirstAddress);
}

TEST_F(FailoverTest, WaitsUntilItsOwnPauseHasEndedTheWrites) {
  replicas_[0].acked = 100;
  ASSERT_EQ(begin({}), "");
  const uint64_t first = failover_.attempt();
  EXPECT_EQ(decide().kind, Decided::kWait);
  failover_.end();
  ASSERT_EQ(begin({}), "");
  failover_.record_writes_ended(first);
  EXPECT_EQ(decide().kind, Decided::kWait) << "that was the pause before";
  failover_.record_writes_ended(failover_.attempt());
  EXPECT_EQ(decide().kind, Decided::kHandOver);
}

TEST_F(FailoverTest, TheTimeoutEndsIt) {
  begin_quietly({std::nullopt, false, 10});
  now_ += 10 * kMsUs - 1;
  EXPECT_EQ(decide().kind, Decided::kWait);
  ++now_;
  EXPECT_EQ(decide().kind, Decided::kGiveUp);
  replicas_[0].acked = 100;
  EXPECT_EQ(decide().kind, Decided::kHandOver) << "late, but whole";
}

TEST_F(FailoverTest, WithForceTheTimeoutGoesOn) {
  begin_quietly({kSecondAddress, true, 10});
  EXPECT_EQ(decide().kind, Decided::kWait);
  now_ += 10 * kMsUs;
  replicas_.clear();
  EXPECT_EQ(decide().kind, Decided::kHandOver);
  EXPECT_EQ(decide().target, kSecondAddress);
}

TEST_F(FailoverTest, ATimeoutBeyondTheClockIsNone) {
  begin_quietly({std::nullopt, false, std::numeric_limits<int64_t>::max()});
  now_ = std::numeric_limits<int64_t>::max() - 1;
  EXPECT_EQ(decide().kind, Decided::kWait);
}

TEST_F(FailoverTest, NothingIsDecidedOutsideTheWait) {
  replicas_[0].acked = 100;
  EXPECT_EQ(decide().kind, Decided::kWait);
  begin_quietly({});
  failover_.hand_over();
  EXPECT_EQ(decide().kind, Decided::kWait);
}

TEST(FailoverStateTest, NamesAsInfoSaysThem) {
  EXPECT_EQ(failover_state_name(State::kNone), "no-failover");
  EXPECT_EQ(failover_state_name(State::kAwaitsSync), "waiting-for-sync");
  EXPECT_EQ(failover_state_name(State::kInProgress), "failover-in-progress");
}

}  // namespace
}  // namespace server
