// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/output_buffer.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ReplicationCommandsTest = CommandTest;

constexpr std::string_view kNoInteger = "ERR value is not an integer or out of range";

TEST_F(ReplicationCommandsTest, SyncMayNotStandBehindOtherReplies) {
  protocol::OutputBuffer replies;
  for (const std::vector<std::string_view>& words :
       {std::vector<std::string_view>{"PING"}, {"PSYNC", "?", "-1"}}) {
    client_->dispatcher.execute(words, clock_.now_ms, replies);
  }
  EXPECT_EQ(replies.view(),
            "+PONG\r\n" + error("ERR SYNC and PSYNC are invalid with pending output"));
}

// As in Redis, a client in MONITOR mode that sends PSYNC gets no reply. A subscriber that sends
// PSYNC gets an error here. Redis accepts PSYNC from a subscriber, and then writes published
// messages into the replication stream.
TEST_F(ReplicationCommandsTest, ClientsWithPushesBecomeNoReplicas) {
  const std::string refused =
      error("ERR a connection that subscribes or tracks keys cannot become a replica");
  run({"HELLO", "3"});
  for (const std::vector<std::string>& sync :
       {std::vector<std::string>{"PSYNC", "?", "-1"}, {"SYNC"}}) {
    run({"SUBSCRIBE", "channel"});
    EXPECT_EQ(run(sync), refused);
    run({"UNSUBSCRIBE"});
    run({"PSUBSCRIBE", "pattern*"});
    EXPECT_EQ(run(sync), refused);
    run({"PUNSUBSCRIBE"});
    run({"CLIENT", "TRACKING", "on"});
    EXPECT_EQ(run(sync), refused);
    run({"CLIENT", "TRACKING", "off"});
  }
  EXPECT_EQ(client_->session->peer, Peer::kClient);
  EXPECT_EQ(run({"MONITOR"}), kOk);
  EXPECT_EQ(run({"PSYNC", "?", "-1"}), "");
  EXPECT_EQ(run({"SYNC"}), "");
  EXPECT_EQ(client_->session->peer, Peer::kMonitor);
}

TEST_F(ReplicationCommandsTest, RequestsThatCannotBeServed) {
  EXPECT_EQ(run({"PSYNC", "?", "x"}), error(kNoInteger));
  EXPECT_EQ(run({"REPLCONF", "rdb-filter-only", ""}), kOk);
  EXPECT_EQ(run({"SYNC"}), error("ERR Filtered replica requires EOF capability"));
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "7"}),
            error("ERR this node does not lead its shard in epoch 7"));
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "-1"}), error(kNoInteger));
  replication_.cluster_place().epoch = 7;
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "7"}), kOk);
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "6"}),
            error("ERR this node does not lead its shard in epoch 6"));
  EXPECT_EQ(run({"REPLCONF", "cluster-node", "x"}),
            error("ERR REPLCONF cluster-node is no node id"));
  const std::string id(40, 'a');
  EXPECT_EQ(run({"REPLCONF", "cluster-epoch", "7", "cluster-node", id}), kOk);
  EXPECT_EQ(client_->session->replica.node_id, id);
  EXPECT_EQ(run({"REPLCONF", "a"}), error("ERR syntax error"));
  EXPECT_EQ(run({"REPLCONF", "a", "b"}), error("ERR Unrecognized REPLCONF option: a"));
  EXPECT_EQ(run({"REPLCONF", "listening-port", "x"}), error(kNoInteger));
  EXPECT_EQ(run({"REPLCONF", "rdb-filter-only", "keys"}),
            error("ERR Unsupported rdb-filter-only option: keys"));
}

}  // namespace
}  // namespace server
