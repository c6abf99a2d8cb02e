// SPDX-License-Identifier: MIT
#include "server/replication/replica/link_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/clock.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using FailureKind = LinkFailures::Kind;

int64_t pause_after(LinkFailures& failures, FailureKind kind, int count) {
  for (int i = 0; i < count; ++i) (void)failures.record_end({"cause"}, kind, 0);
  return failures.pause_ms();
}

TEST(LinkFailuresTest, ThePauseDoublesUpToASecond) {
  LinkFailures failures;
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 1), 20);
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 1), 40);
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 1), 80);
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 10), 1000);
}

TEST(LinkFailuresTest, UnusableLeaderIsRetriedLessOften) {
  LinkFailures failures;
  EXPECT_EQ(pause_after(failures, FailureKind::kUnusable, 20), 10'000);
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 1), 1000);
}

TEST(LinkFailuresTest, RefusedDataAreAskedForOnceInFiveMinutes) {
  LinkFailures failures;
  EXPECT_EQ(pause_after(failures, FailureKind::kRefused, 1), 1000);
  EXPECT_EQ(pause_after(failures, FailureKind::kRefused, 1), 2000);
  EXPECT_EQ(pause_after(failures, FailureKind::kRefused, 7), 256'000);
  EXPECT_EQ(pause_after(failures, FailureKind::kRefused, 20), 300'000);
  failures.reset_pause();
  EXPECT_EQ(pause_after(failures, FailureKind::kRefused, 1), 1000);
}

TEST(LinkFailuresTest, StreamRefusedBehindEachSnapshotIsNoProgress) {
  LinkFailures failures;
  for (int64_t i = 0; i < 20; ++i) {
    (void)failures.record_progress(i * 100 * core::kSecondUs);
    (void)failures.record_end({"cause"}, FailureKind::kRefused, (i * 100 + 99) * core::kSecondUs);
  }
  EXPECT_EQ(failures.pause_ms(), 300'000);
  (void)failures.record_progress(10'000 * core::kSecondUs);
  (void)failures.record_end({"cause"}, FailureKind::kRefused, 10'300 * core::kSecondUs);
  EXPECT_EQ(failures.pause_ms(), 1000);
}

TEST(LinkFailuresTest, LogSaysWhenRefusedDataAreAskedForAgain) {
  LinkFailures failures;
  EXPECT_THAT(failures.record_end({"cause"}, FailureKind::kRefused, 0),
              HasSubstr("down: cause; the next attempt comes in 1 s, or at REPLICAOF"));
  (void)pause_after(failures, FailureKind::kRefused, 5);
  EXPECT_THAT(failures.record_end({"cause"}, FailureKind::kRefused, 60 * core::kSecondUs),
              HasSubstr("cause; 6 times in 60 seconds; the next attempt comes in 64 s, or at"));
}

TEST(LinkFailuresTest, OnlyHelpfulOptionsAreNamed) {
  LinkFailures failures;
  EXPECT_THAT(failures.record_end({"values of type 'list'", core::ErrorCode::kUnsupported},
                                  FailureKind::kRefused, 0),
              ::testing::EndsWith("or at REPLICAOF or CONFIG SET rdb-foreign-types"));
  EXPECT_THAT(failures.record_end({"a filter of an unknown version"}, FailureKind::kRefused, 1),
              ::testing::EndsWith("or at REPLICAOF"));
}

TEST(LinkFailuresTest, ACutStreamIsAskedForAgainSoon) {
  LinkFailures failures;
  EXPECT_EQ(pause_after(failures, FailureKind::kCut, 5), 20);
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 3), 160);
  EXPECT_EQ(pause_after(failures, FailureKind::kCut, 1), 20);
}

TEST(LinkFailuresTest, ProgressEndsThePauseAndTheCause) {
  LinkFailures failures;
  (void)pause_after(failures, FailureKind::kUnusable, 5);
  EXPECT_EQ(failures.cause(), "cause");
  EXPECT_TRUE(failures.is_repeating());
  EXPECT_EQ(failures.record_progress(0), 5U);
  EXPECT_EQ(failures.cause(), "");
  EXPECT_FALSE(failures.is_repeating());
  EXPECT_EQ(failures.record_progress(0), 0U);
  EXPECT_EQ(pause_after(failures, FailureKind::kUnusable, 1), 20);
}

TEST(LinkFailuresTest, StreamThatStopsAfterSnapshotsIsNoProgress) {
  LinkFailures failures;
  for (int64_t i = 0; i < 20; ++i) {
    (void)failures.record_progress(i * core::kSecondUs);
    (void)failures.record_end({"cause"}, FailureKind::kInVain, i * core::kSecondUs + 1000);
  }
  EXPECT_EQ(failures.pause_ms(), 10'000);
  (void)failures.record_progress(100 * core::kSecondUs);
  (void)failures.record_end({"cause"}, FailureKind::kInVain, 110 * core::kSecondUs);
  EXPECT_EQ(failures.pause_ms(), 20);
}

TEST(LinkFailuresTest, HelpfulChangeShortensPauseAndKeepsCause) {
  LinkFailures failures;
  (void)pause_after(failures, FailureKind::kNoLink, 10);
  failures.reset_pause();
  EXPECT_EQ(failures.pause_ms(), 0);
  EXPECT_EQ(failures.cause(), "cause");
  EXPECT_EQ(pause_after(failures, FailureKind::kNoLink, 1), 20);
}

TEST(LinkFailuresTest, ARepeatedCauseIsLoggedOnceAMinuteWithItsCount) {
  LinkFailures failures;
  EXPECT_EQ(failures.record_end({"refused"}, FailureKind::kNoLink, 0),
            "The link to the leader is down: refused");
  for (int i = 1; i < 60; ++i) {
    EXPECT_EQ(failures.record_end({"refused"}, FailureKind::kNoLink, i * core::kSecondUs), "");
    (void)failures.record_progress(0);
  }
  EXPECT_EQ(failures.record_end({"refused"}, FailureKind::kNoLink, 60 * core::kSecondUs),
            "The link to the leader is down: refused; 60 times in 60 seconds");
  EXPECT_EQ(failures.record_end({"refused"}, FailureKind::kNoLink, 61 * core::kSecondUs), "");
}

TEST(LinkFailuresTest, LogsANewCauseWithTheCountOfTheOldOne) {
  LinkFailures failures;
  (void)failures.record_end({"one"}, FailureKind::kNoLink, 0);
  EXPECT_EQ(failures.record_end({"two"}, FailureKind::kNoLink, 0),
            "The link to the leader is down: two");
  (void)failures.record_end({"two"}, FailureKind::kNoLink, 0);
  (void)failures.record_end({"two"}, FailureKind::kNoLink, 0);
  EXPECT_EQ(failures.record_end({"one"}, FailureKind::kNoLink, 0),
            "The link to the leader is down: one; 2 times before: two");
}

TEST(LinkFailuresTest, AnotherLeaderResetsTheFailures) {
  LinkFailures failures;
  (void)pause_after(failures, FailureKind::kNoLink, 10);
  failures.forget();
  EXPECT_EQ(failures.pause_ms(), 0);
  EXPECT_EQ(failures.cause(), "");
  EXPECT_THAT(failures.record_end({"cause"}, FailureKind::kNoLink, 0), HasSubstr("down: cause"));
}

TEST(LinkFailuresTest, ALeaderCannotMakeTheLogLong) {
  LinkFailures failures;
  EXPECT_LT(failures.record_end({std::string(100'000, 'x')}, FailureKind::kNoLink, 0).size(),
            1000U);
  EXPECT_LT(failures.cause().size(), 1000U);
}

}  // namespace
}  // namespace server
