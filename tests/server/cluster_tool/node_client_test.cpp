// SPDX-License-Identifier: MIT
#include "server/cluster_tool/node_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/cluster_tool/played_node.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/wait_limit.h"

namespace server::cluster {
namespace {

// A server that answers the first request with `reply`, whatever the request is, and closes the
// connection.
class OneReply {
 public:
  explicit OneReply(std::string reply) {
    support::limit_waits(listener_.descriptor());
    thread_ = std::thread([this, reply = std::move(reply)] {
      const int client = listener_.accept();
      if (client < 0) {
        ADD_FAILURE() << "no client has connected";
        return;
      }
      support::limit_waits(client);
      char request[1024];
      if (::recv(client, request, sizeof request, 0) > 0) {
        ::send(client, reply.data(), reply.size(), MSG_NOSIGNAL);
      }
      ::close(client);
    });
  }
  ~OneReply() { thread_.join(); }
  Address address() const { return {"127.0.0.1", listener_.port()}; }

 private:
  LoopbackListener listener_;
  std::thread thread_;
};

std::string ask(const std::string& reply) {
  const OneReply server(reply);
  auto client = NodeClient::connect(server.address(), {});
  if (!client) return client.error().message;
  const auto answer = client->call({"PING"});
  std::string text = answer ? answer->text : answer.error().message;
  const std::string name = server.address().text();
  if (const size_t at = text.find(name); at != std::string::npos)
    text.replace(at, name.size(), "S");
  return text;
}

TEST(NodeClientTest, ReturnsRepliesAndErrors) {
  EXPECT_EQ(ask("+PONG\r\n"), "PONG");
  EXPECT_EQ(ask("-NOAUTH x\r\n"), "ERR S: NOAUTH x");
  EXPECT_EQ(ask("$3\r\nab"), "ERR S: the connection was closed");
  EXPECT_NE(ask("nonsense\r\n").find("ERR S: "), std::string::npos);
}

TEST(NodeClientTest, PipelineReturnsRepliesInOrder) {
  constexpr unsigned kCommands = 1000;
  PlayedNode server('a');
  std::vector<std::vector<std::string>> commands;
  for (unsigned slot = 0; slot < kCommands; ++slot) {
    server.set_slot_keys(slot, static_cast<int>(slot));
    commands.push_back({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)});
  }
  auto client = NodeClient::connect(server.address(), {});
  ASSERT_TRUE(client) << client.error().message;
  const auto replies = client->call_all(commands);
  ASSERT_TRUE(replies) << replies.error().message;
  ASSERT_EQ(replies->size(), kCommands);
  for (unsigned slot = 0; slot < kCommands; ++slot) EXPECT_EQ((*replies)[slot].integer, slot);
  commands = {{"DBSIZE"}, {"UNKNOWN"}};
  EXPECT_FALSE(client->call_all(commands)) << "one of the replies is an error";
}

TEST(NodeClientTest, ReportsAMissingServer) {
  const auto client = NodeClient::connect({"127.0.0.1", 1}, {});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().message, "ERR 127.0.0.1:1: Connection refused");
}

TEST(NodeClientTest, ServerWithoutTlsIsAnError) {
  NodeAccess access;
  access.uses_tls = true;
  {
    const OneReply server("+PONG\r\n");
    const auto client = NodeClient::connect(server.address(), access);
    ASSERT_FALSE(client);
    EXPECT_NE(client.error().message.find("TLS"), std::string::npos) << client.error().message;
  }
  access.ca_file = "/no/such/file";
  const auto client = NodeClient::connect({"127.0.0.1", 1}, access);
  ASSERT_FALSE(client);
  EXPECT_TRUE(client.error().message.starts_with("ERR 127.0.0.1:1: ")) << client.error().message;
  EXPECT_NE(client.error().message.find("'/no/such/file'"), std::string::npos)
      << client.error().message;
}

TEST(NodeClientTest, FieldsOfInfoAreWholeLines) {
  constexpr std::string_view kInfo = "# A\r\nrole_x:1\r\nrole:master\r\nlast:2";
  EXPECT_EQ(info_field(kInfo, "role"), "master");
  EXPECT_EQ(info_field(kInfo, "last"), "2");
  EXPECT_EQ(info_field(kInfo, "ast"), "");
}

TEST(NodeClientTest, ServerWithoutAClusterSendsInfoOnly) {
  const OneReply server("$18\r\nrole:master\r\nx:y\r\n\r\n");
  const auto facts = ask_node(server.address(), {});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_FALSE(facts->in_cluster_mode);
  EXPECT_EQ(facts->role, "master");
}

TEST(NodeClientTest, TimeOfLoadingIsNoTimeOfService) {
  const auto since_ready_s = [](const std::string& info) {
    const OneReply server("$" + std::to_string(info.size()) + "\r\n" + info + "\r\n");
    const auto facts = ask_node(server.address(), {});
    EXPECT_TRUE(facts);
    return facts ? facts->since_ready_s : -1;
  };
  EXPECT_EQ(since_ready_s("uptime_in_seconds:60\r\nseconds_since_ready:1\r\n"), 1);
  EXPECT_EQ(since_ready_s("uptime_in_seconds:60\r\n"), 60) << "an older server";
}

// A server that loads its data answers LOADING to all commands except INFO.
TEST(NodeClientTest, LoadingServerIsAskedNothingElse) {
  const std::string info =
      "role:slave\r\ncluster_enabled:1\r\nloading:1\r\nmaster_link_status:down\r\n";
  const OneReply server("$" + std::to_string(info.size()) + "\r\n" + info + "\r\n");
  const auto facts = ask_node(server.address(), {});
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_TRUE(facts->is_loading);
  EXPECT_FALSE(facts->link_is_up);
}

}  // namespace
}  // namespace server::cluster
