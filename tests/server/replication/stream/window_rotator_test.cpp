// SPDX-License-Identifier: MIT
#include "server/replication/stream/window_rotator.h"

#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"
#include "persistence/journal.h"
#include "server/base/process/server_state.h"
#include "tests/support/budget.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class WindowRotatorTest : public CommandTest {
 protected:
  WindowRotatorTest() {
    while (schedule_.take_due(clock_.now_ms)) {  // removes keys that earlier tests have scheduled
    }
    journal_.set_active(true);
    run({"BF.RESERVE", "w", "0.01", "400", "WINDOW", "10"});
    run({"BF.ADD", "w", "a"});
    journalled();
  }

  std::string journalled() {
    std::string bytes;
    journal_.take(bytes);
    return bytes;
  }
  size_t rotations_after_tick() {
    rotator_.tick();
    const std::string bytes = journalled();
    size_t count = 0;
    for (size_t at = bytes.find("BF.TURN"); at != std::string::npos;
         at = bytes.find("BF.TURN", at + 1)) {
      ++count;
    }
    return count;
  }
  void wait_a_generation() { advance_ms(2500); }

  core::keyspace::WindowSchedule& schedule_ = core::keyspace::WindowSchedule::of_process();
  support::Budget budget_{uint64_t{1} << 30};
  WindowRotator rotator_{{clock_, keyspace_, reclaimer_, journal_, state_, pause_, budget_}};
};

TEST_F(WindowRotatorTest, RotatesIdleWindowsUntilTheyAreEmpty) {
  EXPECT_EQ(rotations_after_tick(), 0);
  for (int i = 0; i < 5; ++i) {
    advance_ms(2499);
    EXPECT_EQ(rotations_after_tick(), 0) << i;
    advance_ms(1);
    EXPECT_EQ(rotations_after_tick(), 1) << i;
  }
  EXPECT_EQ(run({"BF.CARD", "w"}), integer(0));
  EXPECT_TRUE(schedule_.empty());
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 0);
  // An add to the empty filter schedules its next rotation.
  run({"BF.ADD", "w", "b"});
  journalled();
  EXPECT_FALSE(schedule_.empty());
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 1);
}

TEST_F(WindowRotatorTest, WaitsForMemory) {
  budget_.set(0);
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 0);
  EXPECT_EQ(run({"BF.EXISTS", "w", "a"}), integer(1));
  budget_.set(uint64_t{1} << 30);
  advance_ms(999);
  EXPECT_EQ(rotations_after_tick(), 0);
  advance_ms(1);
  EXPECT_EQ(rotations_after_tick(), 1);
}

// A rotation that drops a generation needs no more memory than before.
TEST_F(WindowRotatorTest, DropsGenerationsWithoutMemory) {
  for (int i = 0; i < 4; ++i) {
    wait_a_generation();
    ASSERT_EQ(rotations_after_tick(), 1) << i;
    run({"BF.ADD", "w", std::to_string(i)});
    journalled();
  }
  budget_.set(0);
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 1);
  EXPECT_EQ(run({"BF.CARD", "w"}), integer(4));
}

TEST_F(WindowRotatorTest, FollowsKeysWhereverTheyGo) {
  run({"COPY", "w", "copy"});
  run({"RENAME", "w", "new"});
  run({"MOVE", "new", "3"});
  run({"SWAPDB", "3", "4"});
  run({"COPY", "copy", "copy", "DB", "5"});
  run({"BF.RESERVE", "empty", "0.01", "100", "WINDOW", "10"});
  run({"SET", "w", "text"});
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 3);
  run({"FLUSHALL"});
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 0);
  advance_ms(10'000);
  rotator_.tick();
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(WindowRotatorTest, OfSeveralDatabasesTakesTheSoonest) {
  advance_ms(1000);
  EXPECT_EQ(rotations_after_tick(), 0);
  run({"SELECT", "1"});
  run({"BF.RESERVE", "w", "0.01", "400", "WINDOW", "2"});
  run({"BF.ADD", "w", "a"});
  journalled();
  advance_ms(500);
  EXPECT_EQ(rotations_after_tick(), 1);
  advance_ms(1000);
  EXPECT_EQ(rotations_after_tick(), 2);
}

TEST_F(WindowRotatorTest, NotWhileDataAreLoadedOrWritesArePaused) {
  wait_a_generation();
  state_.availability.begin(Availability::kLoading);
  EXPECT_EQ(rotations_after_tick(), 0);
  state_.availability.end(Availability::kLoading);
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(rotations_after_tick(), 0);
  run({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(rotations_after_tick(), 1);
}

TEST_F(WindowRotatorTest, AReplicaTurnsWhenItWasPromoted) {
  state_.is_replica = true;
  wait_a_generation();
  EXPECT_EQ(rotations_after_tick(), 0);
  // A replica does not rotate a filter by its own clock, but only when its leader sends the
  // rotation. So the replica still finds an item that is older than the window.
  advance_ms(100'000);
  EXPECT_EQ(run({"BF.EXISTS", "w", "a"}), integer(1));
  state_.is_replica = false;
  EXPECT_EQ(run({"BF.EXISTS", "w", "a"}), integer(0));
  EXPECT_EQ(rotations_after_tick(), 1);
}

TEST_F(WindowRotatorTest, APromotedReplicaTurnsOnTime) {
  state_.is_replica = true;
  EXPECT_EQ(rotations_after_tick(), 0);
  wait_a_generation();
  state_.is_replica = false;
  EXPECT_EQ(rotations_after_tick(), 1);
}

TEST_F(WindowRotatorTest, AReplicaForgetsTheNamesOfGoneKeys) {
  state_.is_replica = true;
  for (int i = 0; i < 3; ++i) {
    advance_ms(100'000);
    EXPECT_EQ(rotations_after_tick(), 0);
    EXPECT_FALSE(schedule_.empty());
  }
  state_.is_replica = false;
  run({"DEL", "w"});
  state_.is_replica = true;
  // The schedule keeps a key that is missing, because a command may be about to create its filter.
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(schedule_.empty());
    advance_ms(10'000);
    rotator_.tick();
  }
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(WindowRotatorTest, AClockThatJumpsBackStopsNothing) {
  advance_ms(2500);
  EXPECT_EQ(rotations_after_tick(), 1);
  advance_ms(-86'400'000);
  EXPECT_EQ(rotations_after_tick(), 1);
  EXPECT_EQ(run({"BF.EXISTS", "w", "a"}), integer(1));
  for (int i = 0; i < 4; ++i) {
    wait_a_generation();
    EXPECT_EQ(rotations_after_tick(), 1) << i;
  }
  EXPECT_EQ(run({"BF.EXISTS", "w", "a"}), integer(0));
}

TEST_F(WindowRotatorTest, AClockThatJumpsFarForwardNeedsOneTurn) {
  advance_ms(int64_t{1000} * 86'400'000);
  EXPECT_EQ(rotations_after_tick(), 1);
  EXPECT_EQ(run({"BF.CARD", "w"}), integer(0));
}

TEST_F(WindowRotatorTest, NotifiesWatchersAndListeners) {
  std::vector<std::string> rotated;
  WindowRotator rotator{{clock_, keyspace_, reclaimer_, journal_, state_, pause_, budget_,
                         [&](unsigned database, std::string_view key) {
                           rotated.push_back(std::to_string(database) + std::string(key));
                         }}};
  run({"WATCH", "w"});
  rotator.tick();
  EXPECT_TRUE(rotated.empty());
  wait_a_generation();
  rotator.tick();
  EXPECT_EQ(rotated, std::vector<std::string>{"0w"});
  run({"MULTI"});
  EXPECT_EQ(run({"EXEC"}), "*-1\r\n");
  rotator.tick();
  EXPECT_EQ(rotated.size(), 1U);
}

}  // namespace
}  // namespace server
