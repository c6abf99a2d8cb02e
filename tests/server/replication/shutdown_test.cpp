// SPDX-License-Identifier: MIT
#include "server/replication/shutdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string_view>

#include "persistence/journal.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/saves/save_slot.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/error_matcher.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/test_threads.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

class ShutdownTest : public LeaderFixture {
 protected:
  ShutdownTest() {
    threads_.on_visit = [this](const auto& on_all_passed) { end_writes_ = on_all_passed; };
  }
  // Makes the replica acknowledge all bytes of the stream.
  void catch_up(Remote& peer) {
    peer.client.run({"REPLCONF", "ACK", std::to_string(replication_.offset())});
  }
  bool writes_are_held() const { return pause_.holds_back(kWrite, clock_.now_ms); }
  void fail_next_operation() {
    disk_.restart_count();
    disk_.fail_operation(1);
  }
  const ::testing::Matcher<const std::string&> kFailed = is_error("ERR", "SHUTDOWN");

  // Callback of the drain; it reports that the writes which were running have ended.
  std::function<void()> end_writes_;
};

TEST_F(ShutdownTest, WithoutReplicasItEndsWhenNoWriteIsUnderWay) {
  shutdown_.begin({});
  EXPECT_EQ(shutdown_.state(), Shutdown::State::kWaits);
  EXPECT_TRUE(writes_are_held());
  EXPECT_EQ(shutdown_.left_ms(), std::nullopt);
  // The shutdown waits for running writes without a time limit, even if look() and begin() are
  // called meanwhile.
  advance_ms(60'000);
  shutdown_.look();
  shutdown_.begin({.waits_for_replicas = false});
  EXPECT_EQ(shutdowns_requested_, 0);
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 1);
  EXPECT_EQ(shutdown_.state(), Shutdown::State::kEnding);
  EXPECT_TRUE(writes_are_held());
}

// The option shutdown-on-sigterm is a set of bits: one bit for each value after "default", in the
// order that Redis uses.
TEST_F(ShutdownTest, SignalsAskWhatTheirOptionsSay) {
  const Shutdown::Request usual = shutdown_.signal_request(0);
  EXPECT_TRUE(usual.is_signal);
  EXPECT_EQ(usual.save, std::nullopt);
  EXPECT_TRUE(usual.waits_for_replicas);
  EXPECT_FALSE(usual.is_forced);
  EXPECT_EQ(shutdown_.signal_request(1).save, FinalSave::kRequired);
  EXPECT_EQ(shutdown_.signal_request(2).save, FinalSave::kNone);
  EXPECT_FALSE(shutdown_.signal_request(4).waits_for_replicas);
  EXPECT_TRUE(shutdown_.signal_request(8).is_forced);
}

TEST_F(ShutdownTest, WaitsUntilEveryReplicaHasWhatWasWritten) {
  Remote first(*this);
  Remote second(*this);
  psync(first, replication_.offset());
  psync(second, replication_.offset());
  run({"SET", "a", "1"});
  shutdown_.begin({});
  EXPECT_TRUE(writes_are_held());
  EXPECT_EQ(shutdown_.left_ms(), 10'000);
  // While a write is running, the offset that replicas must acknowledge is unknown. So the shutdown
  // does not end, although both replicas have acknowledged all bytes so far.
  catch_up(first);
  catch_up(second);
  shutdown_.look();
  EXPECT_EQ(shutdowns_requested_, 0);
  journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "2"});
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 0);
  catch_up(first);
  shutdown_.look();
  EXPECT_EQ(shutdowns_requested_, 0);
  catch_up(second);
  shutdown_.look();
  EXPECT_EQ(shutdowns_requested_, 1);
  EXPECT_EQ(shutdown_.left_ms(), std::nullopt);
}

TEST_F(ShutdownTest, ReplicasThatHaveEverythingCostNoTime) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  catch_up(peer);
  shutdown_.begin({});
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, WaitsForShutdownTimeoutAtMost) {
  EXPECT_EQ(run({"CONFIG", "SET", "shutdown-timeout", "3"}), kOk);
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  shutdown_.begin({});
  end_writes_();
  advance_ms(2999);
  shutdown_.look();
  EXPECT_EQ(shutdown_.left_ms(), 1);
  EXPECT_EQ(shutdowns_requested_, 0);
  advance_ms(1);
  shutdown_.look();
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, AReplicaThatStillNeedsASnapshotIsNotWaitedFor) {
  Remote peer(*this);
  // The leader delays a diskless snapshot to wait for more replicas. The clock does not advance, so
  // this replica gets no snapshot during the test.
  peer.traits().takes_eof_mark = true;
  peer.client.run({"PSYNC", "?", "-1"});
  run({"SET", "a", "1"});
  shutdown_.begin({});
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, FromTheOrderOnNoChildBeginsUntilItIsTakenBack) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  shutdown_.begin({});
  EXPECT_EQ(run({"BGSAVE"}), error(kServerIsEnding));
  EXPECT_EQ(run({"BGREWRITEAOF"}), error(kServerIsEnding));
  EXPECT_TRUE(shutdown_.abort());
  EXPECT_EQ(run({"BGSAVE"}), "+Background saving started\r\n");
}

TEST_F(ShutdownTest, DoesNotWaitForReplicasWithNow) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  shutdown_.begin({});
  shutdown_.begin({});
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 0);
  EXPECT_TRUE(shutdown_.left_ms());
  shutdown_.begin({.waits_for_replicas = false});
  EXPECT_EQ(shutdowns_requested_, 1);
  shutdown_.look();
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, WithoutATimeoutNothingIsWaitedFor) {
  EXPECT_EQ(run({"CONFIG", "SET", "shutdown-timeout", "0"}), kOk);
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  shutdown_.begin({});
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, AbortBringsWritesBack) {
  EXPECT_FALSE(shutdown_.abort());
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"SHUTDOWN"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kBlocked);
  EXPECT_TRUE(client_->last_result.pending.reply);
  EXPECT_EQ(run_as_other({"SHUTDOWN", "ABORT"}), kOk);
  EXPECT_FALSE(writes_are_held());
  EXPECT_THAT(client_->try_answer(), kFailed);
  EXPECT_EQ(run_as_other({"SHUTDOWN", "ABORT"}), error(kNoShutdown));
  // The callback of the aborted shutdown's drain comes late, and must have no effect.
  end_writes_();
  catch_up(peer);
  advance_ms(60'000);
  shutdown_.look();
  EXPECT_EQ(shutdowns_requested_, 0);
  shutdown_.begin({.waits_for_replicas = false});
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, FailedSavePreventsIt) {
  threads_.on_visit = [](const auto& on_all_passed) { on_all_passed(); };
  fail_next_operation();
  EXPECT_THAT(run({"SHUTDOWN", "SAVE"}), kFailed);
  EXPECT_EQ(shutdown_.state(), Shutdown::State::kNone);
  EXPECT_FALSE(writes_are_held());
  EXPECT_EQ(shutdowns_requested_, 0);
  fail_next_operation();
  EXPECT_EQ(run({"SHUTDOWN", "SAVE", "FORCE"}), "");
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, EndingTheWaitKeepsTheSave) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  Shutdown::Request signal = shutdown_.signal_request(0);
  signal.waits_for_replicas = false;
  for (const Shutdown::Request& request :
       {Shutdown::Request{.waits_for_replicas = false}, signal}) {
    EXPECT_EQ(run({"SHUTDOWN", "SAVE"}), "");
    end_writes_();
    fail_next_operation();
    shutdown_.begin(request);
    EXPECT_EQ(shutdowns_requested_, 0);
    EXPECT_THAT(client_->try_answer(), kFailed);
  }
  EXPECT_EQ(run({"SHUTDOWN", "SAVE"}), "");
  end_writes_();
  fail_next_operation();
  shutdown_.begin({.save = FinalSave::kNone, .waits_for_replicas = false});
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ShutdownTest, WaitingClientsGetTheFailure) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"SHUTDOWN", "SAVE"}), "");
  EXPECT_EQ(client_->try_answer(), "");
  catch_up(peer);
  fail_next_operation();
  end_writes_();
  EXPECT_EQ(shutdowns_requested_, 0);
  EXPECT_THAT(client_->try_answer(), kFailed);
  EXPECT_FALSE(writes_are_held());
}

}  // namespace
}  // namespace server
