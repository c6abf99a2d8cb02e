// SPDX-License-Identifier: MIT
//
// Tests WAIT and WAITAOF: which replicas are asked for an acknowledgement, how many replicas count,
// and when the reply is sent.
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>

#include "protocol/output_buffer.h"
#include "protocol/reply_writer.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/commands/replication/wait_commands.h"
#include "server/dispatch/command_replayer.h"
#include "server/durability/durability.h"
#include "server/durability/log/append_log.h"
#include "server/replication/stream/replication.h"
#include "server/session/awaited_reply.h"
#include "server/session/session.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/set_option.h"
#include "tests/support/stream_bytes.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

class AwaitedAcksTest : public LeaderFixture {
 protected:
  // Makes the replica go online and read the leader's messages so far.
  void go_online(Remote& peer) {
    psync(peer, replication_.offset());
    EXPECT_EQ(peer.read(go_on().size()), go_on());
  }
  void expect_question(Remote& peer) {
    const std::string question = command({"REPLCONF", "GETACK", "*"});
    std::string received;
    while (!received.ends_with(question)) {
      const std::string more = peer.read(1);
      ASSERT_NE(more, "");
      received += more;
    }
  }
  void acknowledge(Remote& peer, uint64_t offset) {
    peer.client.run({"REPLCONF", "ACK", std::to_string(offset)});
  }
  // Returns the reply that the waiting client gets when its timeout has passed.
  std::string late_answer() {
    protocol::OutputBuffer replies;
    protocol::ReplyWriter reply(replies, client_->session->client->resp);
    EXPECT_TRUE(client_->last_result.pending.reply->try_answer(reply, true));
    return std::string(replies.view());
  }
  void open_log() {
    set_option(config_, OptionId::kAppendOnly, "yes");
    ASSERT_TRUE(durability_.recover([this](CommandOrigin origin) {
      return std::make_unique<CommandReplayer>(services_, origin);
    }));
    durability_.availability.end(Availability::kLoading);
  }
};

TEST_F(AwaitedAcksTest, WaitAsksTheReplicasForAcks) {
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  expect_question(peer);
}

TEST_F(AwaitedAcksTest, WaitIsAnsweredWhenEnoughHaveAcknowledged) {
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  const uint64_t end = replication_.offset();
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  acknowledge(peer, end - 1);
  EXPECT_EQ(client_->try_answer(), "");
  acknowledge(peer, end);
  EXPECT_EQ(client_->try_answer(), integer(1));
}

TEST_F(AwaitedAcksTest, WaitCountsWhatIsThereWhenItsTimeIsOver) {
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"WAIT", "1", "300"}), "");
  EXPECT_EQ(client_->last_result.pending.reply->deadline_us(), clock_.monotonic_us() + 300'000);
  EXPECT_EQ(client_->try_answer(), "");
  EXPECT_EQ(late_answer(), integer(0));
}

TEST_F(AwaitedAcksTest, WithoutATimeLimitItWaitsForEver) {
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"WAIT", "1", "0"}), "");
  EXPECT_EQ(client_->last_result.pending.reply->deadline_us(), 0);
}

TEST_F(AwaitedAcksTest, DoesNotWaitInsideATransaction) {
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  acknowledge(peer, replication_.offset());
  run({"MULTI"});
  run({"WAIT", "5", "0"});
  EXPECT_EQ(run({"EXEC"}), array({integer(1)}));
}

TEST_F(AwaitedAcksTest, AnAckOfMoreThanIsWrittenCountsForWhatIs) {
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  acknowledge(peer, replication_.offset() + 1000);
  EXPECT_EQ(run({"WAIT", "1", "0"}), integer(1));
}

// If no replica can acknowledge, a waiting client must not make the leader's thread poll.
TEST_F(AwaitedAcksTest, AWaitWithoutReplicasCostsNoTime) {
  EXPECT_EQ(run({"WAIT", "1", "1000"}), "");
  const std::clock_t before = std::clock();
  support::let_time_pass(std::chrono::milliseconds(400), "a thread that polls would be busy in it");
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 5);
}

TEST_F(AwaitedAcksTest, TheOwnLogIsWaitedForWithItsSync) {
  open_log();
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"WAITAOF", "1", "0", "5000"}), "");
  ASSERT_TRUE(durability_.append_log.flush());
  EXPECT_EQ(client_->try_answer(), array({integer(1), integer(0)}));
}

TEST_F(AwaitedAcksTest, WaitaofCountsReplicasThatHaveSynced) {
  open_log();
  Remote peer(*this);
  go_online(peer);
  run({"SET", "a", "1"});
  const std::string end = std::to_string(replication_.offset());
  EXPECT_EQ(run({"WAITAOF", "0", "1", "5000"}), "");
  expect_question(peer);
  peer.client.run({"REPLCONF", "ACK", end, "FACK", "0"});
  EXPECT_EQ(client_->try_answer(), "") << "it has applied it, and not synced";
  peer.client.run({"REPLCONF", "ACK", end, "FACK", end});
  EXPECT_EQ(client_->try_answer(), array({integer(0), integer(1)}));
}

TEST_F(AwaitedAcksTest, WithoutALogNothingLocalCanBeWaitedFor) {
  EXPECT_EQ(run({"WAITAOF", "1", "0", "10"}), error(kNoLogToWaitFor));
}

}  // namespace
}  // namespace server
