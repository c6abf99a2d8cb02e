// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/output_buffer.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ReplicationCommandsTest = CommandTest;

TEST_F(ReplicationCommandsTest, SyncMayNotStandBehindOtherReplies) {
  protocol::OutputBuffer replies;
  for (const std::vector<std::string_view>& words :
       {std::vector<std::string_view>{"PING"}, {"PSYNC", "?", "-1"}}) {
    client_->dispatcher.execute(words, clock_.now_ms, replies);
  }
  EXPECT_THAT(std::string(replies.view()),
              ::testing::MatchesRegex("\\+PONG\r\n-ERR .*pending output\r\n"));
}

// As in Redis, a client in MONITOR mode that sends PSYNC gets no reply. A subscriber that sends
// PSYNC gets an error here. Redis accepts PSYNC from a subscriber, and then writes published
// messages into the replication stream.
TEST_F(ReplicationCommandsTest, ClientsWithPushesBecomeNoReplicas) {
  const auto refused = is_error("ERR", "subscribes or tracks keys");
  run({"HELLO", "3"});
  for (const std::vector<std::string>& sync :
       {std::vector<std::string>{"PSYNC", "?", "-1"}, {"SYNC"}}) {
    run({"SUBSCRIBE", "channel"});
    EXPECT_THAT(run(sync), refused);
    run({"UNSUBSCRIBE"});
    run({"PSUBSCRIBE", "pattern*"});
    EXPECT_THAT(run(sync), refused);
    run({"PUNSUBSCRIBE"});
    run({"CLIENT", "TRACKING", "on"});
    EXPECT_THAT(run(sync), refused);
    run({"CLIENT", "TRACKING", "off"});
  }
  EXPECT_EQ(client_->session->client->peer, Peer::kClient);
  EXPECT_EQ(run({"MONITOR"}), kOk);
  EXPECT_EQ(run({"PSYNC", "?", "-1"}), "");
  EXPECT_EQ(run({"SYNC"}), "");
  EXPECT_EQ(client_->session->client->peer, Peer::kMonitor);
}

TEST_F(ReplicationCommandsTest, RequestsThatCannotBeServed) {
  EXPECT_EQ(run({"PSYNC", "?", "x"}), error(kNotAnInteger));
  EXPECT_EQ(run({"REPLCONF", "rdb-filter-only", ""}), kOk);
  EXPECT_THAT(run({"SYNC"}), is_error("ERR", "EOF"));
  EXPECT_THAT(run({"REPLCONF", "cluster-epoch", "7"}), is_error("ERR", "epoch 7"));
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "-1"}), error(kNotAnInteger));
  replication_.cluster_place().epoch = 7;
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "7"}), kOk);
  EXPECT_THAT(run({"REPLCONF", "cluster-epoch", "6"}), is_error("ERR", "epoch 6"));
  EXPECT_THAT(run({"REPLCONF", "cluster-node", "x"}), is_error("ERR", "node id"));
  for (const char* const number : {"2", "-1", "x", ""}) {
    EXPECT_THAT(run({"REPLCONF", "rdb-only", number}), is_error("ERR", "value is")) << number;
  }
  EXPECT_EQ(run({"REPLCONF", "cluster-node", "?"}), kOk);
  const std::string id(40, 'a');
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "7", "cluster-node", id}), kOk);
  EXPECT_EQ(client_->session->replica_role().traits.node_id, id);
  EXPECT_EQ(run({"REPLCONF", "a"}), error(kSyntaxError));
  EXPECT_THAT(run({"REPLCONF", "a", "b"}), is_error("ERR", "option: a"));
  EXPECT_EQ(run({"REPLCONF", "listening-port", "x"}), error(kNotAnInteger));
  EXPECT_THAT(run({"REPLCONF", "rdb-filter-only", "keys"}), is_error("ERR", "keys"));
}

}  // namespace
}  // namespace server
