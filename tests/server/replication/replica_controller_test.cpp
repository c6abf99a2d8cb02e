// SPDX-License-Identifier: MIT
#include "server/replication/replica_controller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "server/base/config/config.h"
#include "server/durability/durability_parts.h"
#include "server/replication/failover.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/played_leader.h"
#include "tests/support/sanitized.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

constexpr int kPausePatienceMs = 60'000;

// A real-time clock that blocks its readers: between close() and open(), every thread except the
// test's own waits when it reads the clock.
class GatedClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return time_.wall_ms(); }
  int64_t monotonic_us() const override {
    if (std::this_thread::get_id() != owner_) pass();
    return time_.monotonic_us();
  }

  void close() {
    const std::scoped_lock lock(mutex_);
    is_open_ = false;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void let_one_pass() {
    const std::scoped_lock lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  // Waits until `count` reads of the clock have been blocked. Returns false after a timeout.
  bool await_arrivals(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPausePatienceMs),
                             [&] { return arrivals_ >= count; });
  }

 private:
  void pass() const {
    std::unique_lock lock(mutex_);
    if (is_open_) return;
    ++arrivals_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_ || passes_ > 0; });
    if (!is_open_) --passes_;
  }

  core::SystemClock time_;
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int arrivals_ = 0;
  mutable int passes_ = 0;
  bool is_open_ = true;
};

struct TakesAll final : Replayer {
  std::string_view execute(std::span<const std::string_view> /*words*/) override { return "+OK"; }
};

// Tests a replica that is promoted and immediately hands its role over. During both changes the
// thread of the link to the old leader is blocked, so that this thread notices neither change.
class ReplicaControllerTest : public LeaderFixture {
 protected:
  using Locking = ReplicaController::Locking;

  ~ReplicaControllerTest() override {
    gate_.open();
    subject_.stop();
  }
  // Makes the server a replica of `leader`. Returns when `leader` has received PSYNC.
  void follow(PlayedLeader& leader) {
    {
      const auto stream = replication_.hold(Locking::kTake);
      ASSERT_TRUE(subject_.follow({"127.0.0.1", leader.port(), false}, Locking::kTake));
    }
    subject_.start([](CommandOrigin) { return std::make_unique<TakesAll>(); });
    EXPECT_EQ(leader.await_psync().find("FAILOVER"), std::string::npos);
  }
  void promote_and_hand_over_to(const PlayedLeader& heir) {
    {
      const auto stream = replication_.hold(Locking::kTake);
      ASSERT_TRUE(subject_.promote(Locking::kTake));
    }
    heir_ = std::make_unique<Remote>(*this);
    heir_->traits().address = "127.0.0.1";
    heir_->traits().port = heir.port();
    psync(*heir_, replication_.offset());
    ASSERT_TRUE(subject_.begin_failover({}, Locking::kTake));
    // While the leader waits for acknowledgements, it appends GETACK to the stream, so the stream
    // grows. Each iteration acknowledges the stream up to its new end.
    for (int i = 0; i < 1000 && subject_.failover_state() == Failover::State::kAwaitsSync; ++i) {
      heir_->client.run({"REPLCONF", "ACK", std::to_string(replication_.offset())});
      subject_.drive_failover();
    }
    ASSERT_EQ(subject_.failover_state(), Failover::State::kInProgress);
  }

  PlayedLeader old_leader_;
  PlayedLeader heir_leader_;
  std::unique_ptr<Remote> heir_;
  GatedClock gate_;
  ReplicaController subject_{
      {{{config_, gate_, keyspace_, journal_, disk_, state_}, durability_}, replication_, clients_},
      leader_,
      pause_};
};

TEST_F(ReplicaControllerTest, EndedLinkDoesNotRevokeALaterHandover) {
  ASSERT_NO_FATAL_FAILURE(follow(old_leader_));
  old_leader_.say("+CONTINUE\r\n");
  ASSERT_NO_FATAL_FAILURE(
      await([this] { return subject_.figures().state == ReplicaLinkState::kConnected; }));
  gate_.close();
  ASSERT_TRUE(gate_.await_arrivals(1));
  ASSERT_NO_FATAL_FAILURE(promote_and_hand_over_to(heir_leader_));
  gate_.open();
  // The server that hands over must send PSYNC with FAILOVER. Otherwise the new leader would stay a
  // replica, and no server would lead.
  EXPECT_NE(heir_leader_.await_psync().find("FAILOVER"), std::string::npos);
  EXPECT_EQ(subject_.failover_state(), Failover::State::kInProgress);
}

TEST_F(ReplicaControllerTest, AnOldLeadersAnswerIsNotTheHeirs) {
  ASSERT_NO_FATAL_FAILURE(follow(old_leader_));
  gate_.close();
  ASSERT_TRUE(gate_.await_arrivals(1));
  old_leader_.say("+FULLRESYNC " + std::string(40, 'b') + " 0\r\n");
  // The thread of the link is blocked whenever it reads the clock. It reads the clock a second time
  // only after the leader's reply has arrived.
  gate_.let_one_pass();
  ASSERT_TRUE(gate_.await_arrivals(2));
  ASSERT_NO_FATAL_FAILURE(promote_and_hand_over_to(heir_leader_));
  gate_.open();
  EXPECT_NE(heir_leader_.await_psync().find("FAILOVER"), std::string::npos);
  EXPECT_EQ(subject_.failover_state(), Failover::State::kInProgress);
}

// If the thread of the link missed the request to end, stop() would wait too long. It would wait a
// minute without a configured leader, and forever with one.
TEST_F(ReplicaControllerTest, TheThreadEndsWhereverTheOrderMeetsIt) {
  constexpr int kRounds = support::rounds(500, 60);
  constexpr int kLatestUs = 250;
  for (const bool has_leader : {true, false}) {
    config_.replace(OptionId::kReplicaOf,
                    has_leader ? fmt::format("127.0.0.1 {}", old_leader_.port()) : "");
    for (int round = 0; round < kRounds; ++round) {
      ReplicaController replica_controller{
          {{{config_, gate_, keyspace_, journal_, disk_, state_}, durability_},
           replication_,
           clients_},
          leader_,
          pause_};
      replica_controller.start([](CommandOrigin) { return std::make_unique<TakesAll>(); });
      const auto order =
          std::chrono::steady_clock::now() + std::chrono::microseconds(kLatestUs * round / kRounds);
      while (std::chrono::steady_clock::now() < order) {
      }
      replica_controller.stop();
    }
  }
}

}  // namespace
}  // namespace server
