// SPDX-License-Identifier: MIT
#include "server/replication/stream/key_expiry.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "core/keyspace/keyspace.h"
#include "server/base/process/server_state.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class KeyExpiryTest : public CommandTest {
 protected:
  size_t left_after_tick() {
    expiry_.tick();
    return keyspace_.db_size(0);
  }
  void set_and_wait() {
    run({"SET", "a", "1", "PX", "100"});
    run({"SET", "b", "1"});
    advance_ms(101);
  }

  OwnExpiries own_;
  std::function<void()> posted_;
  KeyExpiry expiry_{{config_, clock_, keyspace_, state_, pause_, own_, gauges_,
                     [this](std::function<void()> task) { posted_ = std::move(task); }}};
};

TEST_F(KeyExpiryTest, DeletesUnusedExpiredKeys) {
  set_and_wait();
  EXPECT_EQ(left_after_tick(), 1u);
}

TEST_F(KeyExpiryTest, NotWhileDataAreLoaded) {
  set_and_wait();
  state_.availability.begin(Availability::kLoading);
  EXPECT_EQ(left_after_tick(), 2u);
  state_.availability.end(Availability::kLoading);
  EXPECT_EQ(left_after_tick(), 1u);
}

TEST_F(KeyExpiryTest, NotWhileWritesArePaused) {
  set_and_wait();
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(left_after_tick(), 2u);
  run({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(left_after_tick(), 1u);
}

TEST_F(KeyExpiryTest, OnAReplicaOnlyItsOwn) {
  run({"SET", "own", "1", "PX", "100"});
  own_.record(0, "own");
  set_and_wait();
  state_.is_replica = true;
  EXPECT_EQ(left_after_tick(), 2u);
  EXPECT_EQ(own_.size(), 0u);
}

// Each read of the clock advances it, so that the time slices of the expiry end.
TEST_F(KeyExpiryTest, APeriodTakesItsShareInSlices) {
  for (const auto& [effort, share_us] : {std::pair{"1", 25'000}, {"10", 43'000}}) {
    SCOPED_TRACE(effort);
    ASSERT_EQ(run({"CONFIG", "SET", "active-expire-effort", effort}), kOk);
    for (int i = 0; i < 20'000; ++i) run({"SET", "k" + std::to_string(i), "1", "PX", "1"});
    advance_ms(2);
    clock_.step_us = 300;
    const uint64_t cut_before = keyspace_.expiry_statistics().ticks_cut_by_time;
    const uint64_t spent_before = gauges_.expire_cycle_us;
    expiry_.tick();
    int slices = 1;
    for (; posted_; ++slices) std::exchange(posted_, nullptr)();
    clock_.step_us = 0;
    EXPECT_GT(keyspace_.db_size(0), 0u);
    EXPECT_EQ(keyspace_.expiry_statistics().ticks_cut_by_time, cut_before + 1);
    const auto spent_us = static_cast<int64_t>(gauges_.expire_cycle_us - spent_before);
    EXPECT_GE(spent_us, share_us);
    EXPECT_LE(spent_us, share_us + 2000);
    EXPECT_GE(slices, share_us / 2000);
    run({"FLUSHALL"});
  }
}

TEST_F(KeyExpiryTest, ASliceThatWaitedDoesNothingOnAReplica) {
  for (int i = 0; i < 1000; ++i) run({"SET", "k" + std::to_string(i), "1", "PX", "1"});
  advance_ms(2);
  clock_.step_us = 600;
  expiry_.tick();
  clock_.step_us = 0;
  const uint64_t left = keyspace_.db_size(0);
  ASSERT_GT(left, 0u);
  ASSERT_TRUE(posted_);
  state_.is_replica = true;
  std::exchange(posted_, nullptr)();
  EXPECT_EQ(keyspace_.db_size(0), left);
  EXPECT_FALSE(posted_);
}

TEST_F(KeyExpiryTest, TheStaleShareIsShown) {
  for (int i = 0; i < 100; ++i) run({"SET", "k" + std::to_string(i), "1", "PX", "100000"});
  for (int i = 0; i < 100; ++i) run({"SET", "g" + std::to_string(i), "1", "PX", "1"});
  expiry_.tick();
  advance_ms(2);
  expiry_.tick();
  expiry_.tick();
  EXPECT_GT(keyspace_.expiry_statistics().stale_ratio.load(), 0);
  EXPECT_LE(keyspace_.expiry_statistics().stale_ratio.load(), 0.5);
}

TEST_F(KeyExpiryTest, TheAverageTimeToLiveIsShown) {
  const auto average_ms = [this] {
    const std::string text = run({"INFO", "keyspace"});
    const size_t at = text.find("avg_ttl=");
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + 8));
  };
  for (int i = 0; i < 100; ++i) {
    run({"SET", "short" + std::to_string(i), "x", "PX", "100000"});
    run({"SET", "long" + std::to_string(i), "x", "PX", "300000"});
  }
  EXPECT_EQ(average_ms(), 200'000);
  run({"FLUSHALL"});
  run({"SET", "stays", "x"});
  EXPECT_EQ(average_ms(), 0);
}

}  // namespace
}  // namespace server
