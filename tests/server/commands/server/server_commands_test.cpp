// SPDX-License-Identifier: MIT
#include "server/base/config/config.h"
#include "server/replication/shutdown.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ServerCommandsTest = CommandTest;
using ConfigCommandsTest = CommandTest;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ServerCommandsTest, InfoChoosesSectionsByName) {
  EXPECT_EQ(run({"INFO", "cluster"}), bulk("# Cluster\r\ncluster_enabled:0\r\n"));
  EXPECT_EQ(run({"INFO", "nothing"}), bulk(""));
  const std::string usual = run({"INFO"});
  EXPECT_TRUE(contains(usual, "redis_version:7.4.0\r\n"));
  EXPECT_TRUE(contains(usual, "\r\nloading:0\r\n"));
  EXPECT_TRUE(contains(usual, "\r\nrole:master\r\n"));
  EXPECT_FALSE(contains(usual, "# Commandstats"));
  EXPECT_FALSE(contains(usual, "bf_bloom"));
  EXPECT_TRUE(contains(run({"INFO", "ALL"}), "cmdstat_info:calls=3,"));
}

TEST_F(ServerCommandsTest, InfoAddsUpTheFilters) {
  run({"BF.RESERVE", "a", "0.01", "100"});
  run({"BF.ADD", "a", "x"});
  const std::string text = run({"INFO", "bf"});
  EXPECT_TRUE(contains(text, "bf_bloom_num_objects:1\r\n"));
  EXPECT_TRUE(contains(text, "bf_bloom_num_items_across_objects:1\r\n"));
  run({"MULTI"});
  run({"INFO", "bf"});
  EXPECT_TRUE(contains(run({"EXEC"}), "bf_bloom_num_objects:1\r\n"));
}

TEST_F(ServerCommandsTest, ShutdownAnswersOnlyErrors) {
  EXPECT_EQ(run({"SHUTDOWN", "ABORT"}), error(kNoShutdown));
  EXPECT_EQ(run({"SHUTDOWN", "SAVE", "NOSAVE"}), error(kSyntaxError));
  EXPECT_EQ(shutdowns_requested_, 0);
  EXPECT_EQ(run({"SHUTDOWN", "NOSAVE"}), "");
  // SHUTDOWN blocks its client, so that no later command of the client is executed. The connection
  // closes when the process ends.
  EXPECT_EQ(client_->last_result.outcome, Outcome::kBlocked);
  EXPECT_EQ(shutdowns_requested_, 1);
}

TEST_F(ServerCommandsTest, TimeAndRole) {
  EXPECT_EQ(run({"TIME"}), array({bulk("1700000000"), bulk("0")}));
  EXPECT_EQ(run({"ROLE"}), array({bulk("master"), integer(0), array({})}));
}

TEST_F(ConfigCommandsTest, GetAndSetTakeSeveral) {
  EXPECT_EQ(run({"CONFIG", "SET", "timeout", "7", "hz", "20"}), kOk);
  EXPECT_EQ(run({"CONFIG", "GET", "timeout"}), array({bulk("timeout"), bulk("7")}));
  EXPECT_EQ(run({"CONFIG", "SET", "timeout", "7", "hz"}), error(kSyntaxError));
  EXPECT_EQ(run({"CONFIG", "REWRITE"}), error(kNoConfigFile));
  EXPECT_EQ(run({"CONFIG", "RESETSTAT"}), kOk);
}

TEST_F(ServerCommandsTest, ReplicasAreNoConnectedClients) {
  EXPECT_NE(run({"INFO", "clients"}).find("connected_clients:2\r\n"), std::string::npos);
  other_->session->client->peer = Peer::kReplica;
  EXPECT_NE(run({"INFO", "clients"}).find("connected_clients:1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace server
