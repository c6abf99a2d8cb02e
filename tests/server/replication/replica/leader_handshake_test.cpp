// SPDX-License-Identifier: MIT
#include "server/replication/replica/leader_handshake.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "server/session/session.h"
#include "tests/support/stream_bytes.h"

namespace server {
namespace {

using HandshakeOutcome = LeaderHandshake::Outcome;

const std::string kLeaderId(40, 'a');

class LeaderHandshakeTest : public testing::Test {
 protected:
  LeaderHandshakeTest() { request_.listening_port = 6380; }

  // Sends the leader's replies to PING and to the next `settings` commands. The leader accepts all
  // of them.
  void agree(int settings) {
    EXPECT_EQ(take("+PONG"), HandshakeOutcome::kNone);
    for (int i = 0; i < settings; ++i) EXPECT_EQ(take("+OK"), HandshakeOutcome::kNone);
  }
  HandshakeOutcome take(std::string_view line) { return handshake().take(line); }
  LeaderHandshake& handshake() {
    if (!handshake_) handshake_.emplace(request_, output_);
    return *handshake_;
  }
  std::string sent() { return std::exchange(output_, {}); }

  LeaderHandshake::Request request_;
  std::string output_;
  std::optional<LeaderHandshake> handshake_;
};

TEST_F(LeaderHandshakeTest, AsksForTheNextThingOnlyAfterPing) {
  handshake();
  EXPECT_EQ(sent(), command({"PING"}));
  EXPECT_EQ(take(""), HandshakeOutcome::kNone);
  EXPECT_EQ(sent(), "");
  EXPECT_EQ(take("+PONG"), HandshakeOutcome::kNone);
  EXPECT_EQ(sent(), command({"REPLCONF", "listening-port", "6380"}) +
                        command({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "bloomery"}));
  EXPECT_EQ(take("+OK"), HandshakeOutcome::kNone);
  EXPECT_EQ(sent(), "");
  EXPECT_EQ(take("+OK"), HandshakeOutcome::kNone);
  EXPECT_EQ(sent(), command({"PSYNC", "?", "-1"}));
}

TEST_F(LeaderHandshakeTest, TellsUserAndAddressWhenTheyAreSet) {
  request_.user = "replica";
  request_.password = "secret";
  request_.announced_address = "10.0.0.7";
  handshake();
  EXPECT_EQ(take("-NOAUTH x"), HandshakeOutcome::kNone);
  const std::string asked = sent();
  EXPECT_NE(asked.find(command({"AUTH", "replica", "secret"})), std::string::npos);
  EXPECT_NE(asked.find(command({"REPLCONF", "ip-address", "10.0.0.7"})), std::string::npos);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(take("+OK"), HandshakeOutcome::kNone);
    EXPECT_EQ(sent(), "");
  }
  EXPECT_EQ(take("+OK"), HandshakeOutcome::kNone);
  EXPECT_EQ(sent(), command({"PSYNC", "?", "-1"}));
}

TEST_F(LeaderHandshakeTest, AsksForTheStreamBehindTheDataThatIsThere) {
  request_.id = kLeaderId;
  request_.offset = 41;
  request_.takes_over = true;
  agree(3);
  EXPECT_TRUE(sent().ends_with(command({"PSYNC", kLeaderId, "42", "FAILOVER"})));
  EXPECT_EQ(take("+CONTINUE " + std::string(40, 'b')), HandshakeOutcome::kContinue);
  EXPECT_EQ(handshake().id(), std::string(40, 'b'));
  EXPECT_EQ(handshake().offset(), 41);
}

TEST_F(LeaderHandshakeTest, ContinuesUnderTheIdItAskedFor) {
  request_.id = kLeaderId;
  agree(3);
  EXPECT_EQ(take("+CONTINUE"), HandshakeOutcome::kContinue);
  EXPECT_EQ(handshake().id(), kLeaderId);
}

// Version 1.0.0 rejects the value, and other servers reject the option.
TEST_F(LeaderHandshakeTest, LearnsWhetherTheLeaderIsABloomery) {
  const std::pair<std::string, bool> answers[] = {
      {"+OK", false},
      {"-ERR another error", false},
      {fmt::format("-{}cluster-node", kUnknownReplconf), true}};
  for (const auto& [answer, is_foreign] : answers) {
    handshake_.reset();
    request_.id = kLeaderId;
    agree(2);
    EXPECT_NE(sent().find(command({"REPLCONF", "cluster-node", "?"})), std::string::npos);
    EXPECT_EQ(take(answer), HandshakeOutcome::kNone);
    EXPECT_EQ(take("+CONTINUE"), HandshakeOutcome::kContinue);
    EXPECT_EQ(handshake().leader_is_foreign(), is_foreign) << answer;
  }
}

TEST_F(LeaderHandshakeTest, DoesNotContinueWhatItDidNotAskFor) {
  agree(2);
  EXPECT_EQ(take("+CONTINUE"), HandshakeOutcome::kFailed);
  EXPECT_EQ(handshake().failure(), "the leader answers PSYNC: +CONTINUE");
}

TEST_F(LeaderHandshakeTest, LearnsOfWhichDataASnapshotWillBe) {
  agree(2);
  EXPECT_EQ(take("+FULLRESYNC " + kLeaderId + " 1000"), HandshakeOutcome::kFullSync);
  EXPECT_EQ(handshake().id(), kLeaderId);
  EXPECT_EQ(handshake().offset(), 1000);
  EXPECT_TRUE(handshake().knows_psync());
}

TEST_F(LeaderHandshakeTest, AsksAnOldLeaderInItsOwnWay) {
  agree(2);
  (void)sent();
  EXPECT_EQ(take("-ERR unknown command 'PSYNC'"), HandshakeOutcome::kFullSync);
  EXPECT_EQ(sent(), command({"SYNC"}));
  EXPECT_EQ(handshake().id(), "");
  EXPECT_FALSE(handshake().knows_psync());
}

TEST_F(LeaderHandshakeTest, GoesOnWithoutASettingThatIsRefused) {
  EXPECT_EQ(take("+PONG"), HandshakeOutcome::kNone);
  EXPECT_EQ(take("-ERR unknown option"), HandshakeOutcome::kNone);
  EXPECT_EQ(take("-ERR unknown option"), HandshakeOutcome::kNone);
  EXPECT_TRUE(sent().ends_with(command({"PSYNC", "?", "-1"})));
}

TEST_F(LeaderHandshakeTest, FollowsInAClusterOnlyALeaderOfItsEpoch) {
  request_.cluster_epoch = 7;
  request_.cluster_node = "a";
  handshake();
  EXPECT_EQ(take("+PONG"), HandshakeOutcome::kNone);
  EXPECT_NE(sent().find(command({"REPLCONF", "cluster-epoch", "7", "cluster-node", "a"})),
            std::string::npos);
  EXPECT_EQ(take("+OK"), HandshakeOutcome::kNone);
  EXPECT_EQ(take("-ERR no capa"), HandshakeOutcome::kNone) << "that one is not needed";
  EXPECT_EQ(take("-ERR this node does not lead"), HandshakeOutcome::kFailed);
  EXPECT_NE(handshake().failure().find("cluster-epoch"), std::string::npos);
}

TEST_F(LeaderHandshakeTest, FailsWithAWrongPassword) {
  request_.password = "wrong";
  EXPECT_EQ(take("+PONG"), HandshakeOutcome::kNone);
  EXPECT_EQ(take("-WRONGPASS invalid"), HandshakeOutcome::kFailed);
  EXPECT_EQ(handshake().failure(),
            "Unable to AUTH to MASTER: -WRONGPASS invalid (masterauth, masteruser)");
}

TEST_F(LeaderHandshakeTest, FailsWithAServerThatIsNoLeader) {
  EXPECT_EQ(take("HTTP/1.1 400"), HandshakeOutcome::kFailed);
  EXPECT_EQ(handshake().failure(), "the leader answers PING: HTTP/1.1 400");
}

TEST_F(LeaderHandshakeTest, TakesOverOnlyFromALeaderThatKnowsHow) {
  request_.id = kLeaderId;
  request_.takes_over = true;
  agree(3);
  EXPECT_EQ(take("-ERR syntax"), HandshakeOutcome::kFailed);
}

}  // namespace
}  // namespace server
