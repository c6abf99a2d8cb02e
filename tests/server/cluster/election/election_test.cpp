// SPDX-License-Identifier: MIT
#include "server/cluster/election/election.h"

#include <gtest/gtest.h>

namespace server::cluster {
namespace {

constexpr int64_t kAnswersUs = 300'000;
constexpr int64_t kRankUs = 300'000;
constexpr int64_t kLearnsUs = 2'000'000;
constexpr HistoryPosition kOwn{7, 100};

TEST(Election, WithoutPeersItIsDueAtOnce) {
  Election election("b");
  election.begin(1, {}, 1000);
  EXPECT_TRUE(election.is_due(kOwn, 1000));
  EXPECT_TRUE(election.is_idle());
  EXPECT_FALSE(election.is_due(kOwn, 1000));
}

TEST(Election, WaitsForAnswersNoLongerThanTheirLimit) {
  Election election("b");
  election.begin(1, {"a"}, 1000);
  EXPECT_FALSE(election.is_due(kOwn, 1000));
  EXPECT_FALSE(election.is_due(kOwn, 999 + kAnswersUs));
  EXPECT_TRUE(election.is_due(kOwn, 1000 + kAnswersUs));
}

TEST(Election, MemberWithTheLongestHistoryGoesFirst) {
  Election election("b");
  election.begin(1, {"a", "c"}, 0);
  election.answered(1, "a", {7, 99});
  election.answered(1, "c", {7, 101});
  EXPECT_FALSE(election.is_due(kOwn, 0));
  EXPECT_FALSE(election.is_due(kOwn, kRankUs + kLearnsUs - 1)) << "c may learn of it late";
  EXPECT_TRUE(election.is_due(kOwn, kRankUs + kLearnsUs));
}

TEST(Election, ANewerEpochCountsMoreThanALongerStream) {
  Election election("b");
  election.begin(1, {"a", "c"}, 0);
  election.answered(1, "a", {6, 1000});
  election.answered(1, "c", {0, 2000});
  EXPECT_TRUE(election.is_due(kOwn, 0));
}

TEST(Election, EqualsStandInTheOrderOfTheirIds) {
  Election election("b");
  election.begin(1, {"a", "c"}, 0);
  election.answered(1, "a", kOwn);
  election.answered(1, "c", kOwn);
  EXPECT_FALSE(election.is_due(kOwn, 0));
  EXPECT_TRUE(election.is_due(kOwn, kRankUs));
}

TEST(Election, APeerThatCannotStandIsNotWaitedFor) {
  Election election("b");
  election.begin(1, {"a"}, 0);
  election.failed(1, "a");
  EXPECT_TRUE(election.is_due(kOwn, 0));
}

TEST(Election, IgnoresAnswersOfOldAttemptsAndNonMembers) {
  Election election("b");
  election.begin(1, {"a"}, 0);
  election.cancel();
  EXPECT_FALSE(election.is_due(kOwn, kAnswersUs));
  election.begin(2, {"a"}, 0);
  election.answered(1, "a", {9, 0});
  election.answered(2, "x", {9, 0});
  election.failed(1, "a");
  EXPECT_FALSE(election.is_due(kOwn, 0));
  EXPECT_TRUE(election.is_due(kOwn, kAnswersUs));
}

}  // namespace
}  // namespace server::cluster
