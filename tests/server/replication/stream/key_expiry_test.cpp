// SPDX-License-Identifier: MIT
#include "server/replication/stream/key_expiry.h"

#include <gtest/gtest.h>

#include "core/keyspace/keyspace.h"
#include "server/process/server_state.h"
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
  KeyExpiry expiry_{{config_, clock_, keyspace_, state_, pause_, own_, gauges_}};
};

TEST_F(KeyExpiryTest, DeletesWhatNobodyAsksFor) {
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
  own_.note(0, "own");
  set_and_wait();
  state_.is_replica = true;
  EXPECT_EQ(left_after_tick(), 2u);
  EXPECT_EQ(own_.size(), 0u);
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
  EXPECT_EQ(average_ms(), 0);
  for (int i = 0; i < 50; ++i) expiry_.tick();
  EXPECT_NEAR(static_cast<double>(average_ms()), 200'000, 20'000);
  run({"FLUSHALL"});
  run({"SET", "stays", "x"});
  for (int i = 0; i < 50; ++i) expiry_.tick();
  EXPECT_EQ(average_ms(), 0);
}

}  // namespace
}  // namespace server
