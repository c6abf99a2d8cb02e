// SPDX-License-Identifier: MIT
//
// Tests the reply gate, which holds replies back until the append log has their writes. The log and
// the clients are simulated, without sockets and files.
#include "server/net/loop/reply_gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/cluster/cluster_state.h"
#include "server/cluster/permit_clock.h"
#include "server/cluster/view.h"
#include "tests/support/fake_reply_log.h"

namespace server::net {
namespace {

struct FakeSink final : ReplySink {
  void send(std::string_view replies, protocol::OutputBuffer* whole) override {
    sent += replies;
    take(replies, whole);
  }
  void hold(std::string_view replies, std::span<const ReplySpan> writes,
            protocol::OutputBuffer* /*whole*/) override {
    held += replies;
    for (const ReplySpan& write : writes) {
      held_writes.emplace_back(replies.substr(write.begin, write.end - write.begin));
    }
  }
  void take(std::string_view replies, protocol::OutputBuffer* whole) {
    if (whole == nullptr) return;
    EXPECT_EQ(whole->view(), replies);
    taken.swap(*whole);
  }
  void release(std::string_view error) override {
    sent += held;
    held.clear();
    last_error = error;
    if (on_release) on_release();
  }
  void close() override { is_dropped = true; }

  std::string sent;
  protocol::OutputBuffer taken;
  std::string held;
  std::vector<std::string> held_writes;
  std::string last_error;
  bool is_dropped = false;
  std::function<void()> on_release;
};

class ReplyGateTest : public testing::Test {
 protected:
  void reply(const std::shared_ptr<FakeSink>& sink, std::string_view text, bool writes = false) {
    append(text, writes);
    gate_.add(*sink);
  }
  void append(std::string_view text, bool writes = false) {
    const size_t begin = gate_.replies().size();
    gate_.replies().append(text);
    if (writes) gate_.record_write(begin);
  }

  FakeReplyLog log_;
  bool is_waiting_ = false;
  ReplyGate gate_{log_, [this](bool is_waiting) { is_waiting_ = is_waiting; }};
  std::shared_ptr<FakeSink> one_ = std::make_shared<FakeSink>();
  std::shared_ptr<FakeSink> two_ = std::make_shared<FakeSink>();
};

struct FakeAcks final : WriteAcks {
  uint64_t offset_of_writes() const override { return end; }
  bool has_all(uint64_t offset) const override { return offset <= acked; }
  void request() override { ++requests; }

  uint64_t end = 10;
  uint64_t acked = 9;
  int requests = 0;
};

TEST_F(ReplyGateTest, WritesWaitForAcknowledgements) {
  FakeAcks acks;
  gate_.set_acks(&acks);
  reply(one_, "write", true);
  reply(two_, "read");
  gate_.end_round();
  EXPECT_EQ(one_->sent, "");
  EXPECT_EQ(one_->held, "write");
  EXPECT_EQ(two_->sent, "read");
  EXPECT_TRUE(is_waiting_);
  EXPECT_EQ(acks.requests, 1);
  // Later replies to the same client are also held back, because replies must keep their order.
  gate_.release_safe();
  EXPECT_EQ(one_->sent, "");
  acks.acked = 10;
  gate_.release_safe();
  EXPECT_EQ(one_->sent, "write");
  EXPECT_EQ(one_->last_error, "");
  EXPECT_FALSE(is_waiting_);
  reply(one_, "acknowledged", true);
  gate_.end_round();
  EXPECT_EQ(one_->sent, "writeacknowledged");
  EXPECT_EQ(acks.requests, 1);
}

TEST_F(ReplyGateTest, RepliesLeaveWhenTheRoundEnds) {
  reply(one_, "a");
  reply(two_, "b");
  EXPECT_EQ(one_->sent + two_->sent, "");
  gate_.end_round();
  EXPECT_EQ(one_->sent, "a");
  EXPECT_EQ(two_->sent, "b");
  EXPECT_TRUE(gate_.replies().empty());
  EXPECT_EQ(log_.writes + log_.commits, 0);
  EXPECT_FALSE(is_waiting_);
}

TEST_F(ReplyGateTest, ManyBytesAreHandedOver) {
  const std::string many(size_t{2} << 20, 'x');
  reply(one_, "a");
  reply(two_, many);
  reply(one_, "b");
  gate_.end_round();
  EXPECT_EQ(one_->sent, "ab");
  EXPECT_TRUE(one_->taken.empty());
  EXPECT_EQ(two_->sent, many);
  EXPECT_EQ(two_->taken.view(), many);
  EXPECT_TRUE(gate_.replies().empty());
  // The reply gate gives all bytes to the client's sink, even if the sink cannot send all of them
  // at once.
  two_->sent.clear();
  log_.end = 1;
  reply(one_, "c");
  reply(two_, many);
  EXPECT_TRUE(gate_.replies().empty());
  EXPECT_EQ(two_->sent + two_->held, many);
}

TEST_F(ReplyGateTest, KeepsLittleMemoryBetweenRounds) {
  const std::string many(size_t{200} << 10, 'x');
  for (int i = 0; i < 10; ++i) append(many);
  gate_.add(*one_);
  gate_.end_round();
  one_->taken = {};
  append(many);
  gate_.add(*one_);
  EXPECT_LE(gate_.replies().capacity(), size_t{256} << 10);
}

TEST_F(ReplyGateTest, WithoutAPermitNoWriteIsAcknowledged) {
  constexpr int64_t kSecondUs = 1'000'000;
  cluster::ClusterState state(1);
  gate_.set_permit(&state);
  reply(one_, "a", true);
  reply(two_, "b");
  gate_.end_round();
  EXPECT_TRUE(one_->is_dropped);
  EXPECT_EQ(one_->sent, "");
  EXPECT_EQ(two_->sent, "b");
  const int64_t now_us = cluster::permit_clock_us();
  state.set_permit(now_us + 60 * kSecondUs, now_us + 120 * kSecondUs);
  reply(one_, "c", true);
  gate_.end_round();
  EXPECT_EQ(one_->sent, "");
  state.set_permit(now_us, now_us + 60 * kSecondUs);
  reply(one_, "d", true);
  gate_.end_round();
  EXPECT_EQ(one_->sent, "d");
}

TEST_F(ReplyGateTest, PermitMustHoldWhenTheLogIsSafe) {
  constexpr int64_t kSecondUs = 1'000'000;
  cluster::ClusterState state(1);
  gate_.set_permit(&state);
  const int64_t now_us = cluster::permit_clock_us();
  state.set_permit(now_us, now_us + 60 * kSecondUs);
  log_.end = 10;
  reply(one_, "a", true);
  gate_.end_round();
  EXPECT_EQ(one_->held, "a");
  state.set_permit(now_us, now_us);
  log_.safe = 10;
  gate_.release_safe();
  EXPECT_TRUE(one_->is_dropped);
  EXPECT_EQ(one_->sent, "");
}

TEST_F(ReplyGateTest, ManyBytesLeaveBefore) {
  reply(one_, std::string(40'000, 'x'));
  EXPECT_EQ(one_->sent.size(), 40'000u);
}

TEST_F(ReplyGateTest, DroppedRepliesAreNotSent) {
  reply(one_, "a");
  append("lost", true);
  EXPECT_EQ(gate_.fresh(), "lost");
  gate_.drop_fresh();
  EXPECT_EQ(gate_.fresh(), "");
  log_.is_failing = true;
  log_.end = 5;
  // Only the command whose reply "lost" was dropped has written to the log. "b" is the reply to a
  // read, so it must not wait for the log.
  reply(two_, "b");
  gate_.end_round();
  EXPECT_EQ(one_->sent, "a");
  EXPECT_EQ(two_->sent, "b");
}

TEST_F(ReplyGateTest, OneWriteServesAll) {
  log_.writes_at_once = true;
  log_.end = 10;
  reply(one_, "a", true);
  reply(two_, "b", true);
  gate_.end_round();
  EXPECT_EQ(log_.writes, 1);
  EXPECT_EQ(log_.commits, 0);
  EXPECT_EQ(one_->sent + two_->sent, "ab");
}

TEST_F(ReplyGateTest, UnsafeRepliesAreHeldAndCommittedOnce) {
  log_.end = 10;
  reply(one_, "a", true);
  log_.end = 20;
  reply(two_, "b", true);
  gate_.end_round();
  EXPECT_EQ(log_.commits, 1);
  EXPECT_EQ(log_.committed_for, 2u);
  EXPECT_EQ(one_->held, "a");
  EXPECT_TRUE(is_waiting_);
  log_.safe = 10;
  gate_.release_safe();
  EXPECT_EQ(one_->sent, "a");
  EXPECT_EQ(two_->sent, "");
  EXPECT_TRUE(is_waiting_);
  // The reply "b" is still held, so end_round() commits the log again. But the client `two_`
  // already waited before this round, so this commit reports no new client.
  log_.on_commit = [this] { log_.safe = 20; };
  gate_.end_round();
  EXPECT_EQ(log_.commits, 2);
  EXPECT_EQ(log_.committed_for, 0u);
  EXPECT_EQ(two_->sent, "b");
  EXPECT_FALSE(is_waiting_);
}

TEST_F(ReplyGateTest, ProgressWithinTheCommitIsSeen) {
  log_.end = 10;
  log_.on_commit = [this] {
    EXPECT_TRUE(is_waiting_);
    log_.safe = 10;
  };
  reply(one_, "a", true);
  gate_.end_round();
  EXPECT_EQ(one_->sent, "a");
}

TEST_F(ReplyGateTest, AReleasedSinkMayGoOnInTheSameRound) {
  log_.end = 10;
  log_.on_commit = [this] { log_.safe = log_.end; };
  one_->on_release = [this] {
    if (log_.end >= 30) return;
    log_.end += 10;
    reply(one_, "+", true);
  };
  reply(one_, "a", true);
  gate_.end_round();
  EXPECT_EQ(one_->sent, "a++");
  EXPECT_EQ(log_.commits, 3);
}

TEST_F(ReplyGateTest, LogFailureIsReportedToWaitingClients) {
  log_.end = 10;
  append("r");
  append("w", true);
  append("w", true);
  gate_.add(*one_);
  gate_.end_round();
  EXPECT_EQ(one_->held, "rww");
  EXPECT_EQ(one_->held_writes, (std::vector<std::string>{"w", "w"}));
  EXPECT_EQ(one_->last_error, "");
  log_.is_failing = true;
  gate_.release_safe();
  EXPECT_EQ(one_->last_error, "IOERR full");
  EXPECT_FALSE(is_waiting_);
}

TEST_F(ReplyGateTest, WhileTheLogFailsReadsLeave) {
  log_.end = 10;
  log_.is_failing = true;
  reply(one_, "read");
  reply(two_, "write", true);
  gate_.flush();
  EXPECT_EQ(one_->sent, "read");
  EXPECT_EQ(two_->held, "write");
}

TEST_F(ReplyGateTest, ASinkLivesWhileItWaits) {
  log_.end = 10;
  reply(one_, "a", true);
  gate_.end_round();
  const std::weak_ptr<FakeSink> watched = one_;
  one_.reset();
  EXPECT_FALSE(watched.expired());
  log_.safe = 10;
  gate_.release_safe();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace server::net
