// SPDX-License-Identifier: MIT
#include "server/cluster_tool/tool_call.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server::cluster {
namespace {

ToolCall call_of(std::vector<std::string> words) {
  auto parsed = parse_tool_call(std::move(words));
  if (const auto* usage = std::get_if<ToolUsage>(&parsed)) {
    ADD_FAILURE() << usage->err;
    return {};
  }
  return std::get<ToolCall>(std::move(parsed));
}

ToolUsage usage_of(std::vector<std::string> words) {
  const auto parsed = parse_tool_call(std::move(words));
  const auto* usage = std::get_if<ToolUsage>(&parsed);
  return usage == nullptr ? ToolUsage{-1, {}, {}} : *usage;
}

TEST(ToolCallTest, CreateTakesAllNodes) {
  const ToolCall call = call_of({"--etcd", "http://a:1,http://b:1", "--cluster", "shop", "create",
                                 "--replicas", "1", "a:1", "b:2"});
  EXPECT_EQ(call.command, "create");
  EXPECT_EQ(call.endpoints, (std::vector<std::string>{"http://a:1", "http://b:1"}));
  EXPECT_EQ(call.cluster, "shop");
  EXPECT_EQ(call.replicas, 1U);
  EXPECT_EQ(call.nodes, (std::vector<Address>{{"a", 1}, {"b", 2}}));
}

TEST(ToolCallTest, BackupAndRestoreNameADirectory) {
  EXPECT_EQ(call_of({"--etcd", "http://a:1", "backup", "/b/1"}).directory, "/b/1");
  const ToolCall call = call_of({"--etcd", "http://a:1", "restore", "/b/1", "a:1", "b:2"});
  EXPECT_EQ(call.command, "restore");
  EXPECT_EQ(call.directory, "/b/1");
  EXPECT_EQ(call.nodes, (std::vector<Address>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(usage_of({"--etcd", "http://a:1", "backup"}).exit_code, 2);
  EXPECT_EQ(usage_of({"--etcd", "http://a:1", "restore", "/b/1"}).exit_code, 2);
}

TEST(ToolCallTest, OptionsMayStandBehindTheCommand) {
  const ToolCall call = call_of({"status", "--etcd", "https://a:1", "--json", "--user", "u",
                                 "--password-file", "p", "--cacert", "c"});
  EXPECT_EQ(call.command, "status");
  EXPECT_EQ(call.cluster, "bloomery");
  EXPECT_TRUE(call.as_json);
  EXPECT_EQ(call.user + call.password_file + call.ca_file, "upc");
}

TEST(ToolCallTest, UserAndPasswordOfEtcdGoTogether) {
  EXPECT_EQ(usage_of({"--etcd", "http://a:1", "--user", "u", "status"}).exit_code, 2);
  EXPECT_EQ(usage_of({"--etcd", "http://a:1", "--password-file", "p", "status"}).exit_code, 2);
}

TEST(ToolCallTest, CaFileNeedsAnHttpsEndpoint) {
  const ToolUsage usage = usage_of({"--etcd", "http://a:1,http://b:1", "--cacert", "c", "status"});
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_NE(usage.err.find("--cacert"), std::string::npos) << usage.err;
  EXPECT_NE(usage.err.find("https://"), std::string::npos) << usage.err;
  EXPECT_EQ(call_of({"--etcd", "http://a:1,https://b:1", "--cacert", "c", "status"}).ca_file, "c");
}

TEST(ToolCallTest, EtcdMayWantACertificate) {
  const ToolCall call = call_of({"--etcd", "https://a:1", "--cert", "c", "--key", "k", "status"});
  EXPECT_EQ(call.cert_file + call.key_file, "ck");
  EXPECT_EQ(usage_of({"--etcd", "https://a:1", "--cert", "c", "status"}).exit_code, 2);
  EXPECT_EQ(usage_of({"--etcd", "https://a:1", "--key", "k", "status"}).exit_code, 2);
  const ToolUsage usage = usage_of({"--etcd", "http://a:1", "--cert", "c", "--key", "k", "status"});
  EXPECT_NE(usage.err.find("--cert needs an https://"), std::string::npos) << usage.err;
}

TEST(ToolCallTest, ServersMayWantUsersAndTls) {
  const ToolCall call = call_of({"--etcd", "http://a:1", "--node-user", "u", "--node-password-file",
                                 "p", "--node-tls", "--node-cacert", "c", "--node-cert", "d",
                                 "--node-key", "e", "status"});
  EXPECT_EQ(call.access.user + call.node_password_file + call.access.ca_file, "upc");
  EXPECT_TRUE(call.access.uses_tls);
  EXPECT_EQ(call.access.cert_file + call.access.key_file, "de");
  EXPECT_EQ(usage_of({"--etcd", "http://a:1", "--node-cacert", "c", "status"}).exit_code, 2);
  EXPECT_EQ(
      usage_of({"--etcd", "http://a:1", "--node-tls", "--node-cert", "c", "status"}).exit_code, 2);
}

TEST(ToolCallTest, OtherCommandsNameANodeOrAShard) {
  const ToolCall add = call_of({"--etcd", "http://a:1", "add", "a:1", "--shard", "s2"});
  EXPECT_EQ(add.nodes, (std::vector<Address>{{"a", 1}}));
  EXPECT_EQ(add.shard, "s2");
  const ToolCall failover =
      call_of({"--etcd", "http://a:1", "failover", "s1", "--to", "b:2", "--force"});
  EXPECT_EQ(failover.shard, "s1");
  EXPECT_EQ(failover.to, (Address{"b", 2}));
  EXPECT_TRUE(failover.force);
  EXPECT_FALSE(call_of({"--etcd", "http://a:1", "failover", "s1"}).to);
}

TEST(ToolCallTest, WaysBackAreConfirmed) {
  const ToolCall shown = call_of({"--etcd", "http://a:1", "recover", "a:1", "b:1"});
  EXPECT_EQ(shown.nodes.size(), 2U);
  EXPECT_FALSE(shown.is_confirmed);
  EXPECT_TRUE(call_of({"--etcd", "http://a:1", "recover", "a:1", "--yes"}).is_confirmed);
  const ToolCall refused = call_of({"--etcd", "http://a:1", "replace", "s1", "a:1"});
  EXPECT_EQ(refused.shard, "s1");
  EXPECT_EQ(refused.nodes, (std::vector<Address>{{"a", 1}}));
  EXPECT_FALSE(refused.accepts_loss);
  EXPECT_TRUE(
      call_of({"--etcd", "http://a:1", "replace", "s1", "a:1", "--accept-loss"}).accepts_loss);
}

TEST(ToolCallTest, WrongArgumentsAreAUsageError) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"status"},
      {"--etcd", "http://a:1"},
      {"--etcd", "http://a:1", "create"},
      {"--etcd", "http://a:1", "create", "a"},
      {"--etcd", "http://a:1", "create", "--replicas", "-1", "a:1"},
      {"--etcd", "http://a:1", "add"},
      {"--etcd", "http://a:1", "recover"},
      {"--etcd", "http://a:1", "replace", "s1"},
      {"--etcd", "http://a:1", "add", "a:1", "b:1"},
      {"--etcd", "http://a:1", "failover", "s1", "--to", "b"},
      {"--etcd", "http://a:1", "status", "--unknown"},
      {"--etcd", "http://a:1", "grow"},
  };
  for (const auto& words : wrong) {
    const ToolUsage usage = usage_of(words);
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_TRUE(usage.out.empty());
    EXPECT_FALSE(usage.err.empty());
  }
}

TEST(ToolCallTest, ErrorNamesTheUnknownWord) {
  const auto error_of = [](std::vector<std::string> words) {
    const ToolUsage usage = usage_of(std::move(words));
    EXPECT_EQ(usage.exit_code, 2);
    return usage.err;
  };
  EXPECT_NE(error_of({"--etcd", "http://a:1", "statuss"}).find("command 'statuss'"),
            std::string::npos);
  EXPECT_NE(error_of({"failovr", "s1", "--to", "b:1"}).find("command 'failovr'"),
            std::string::npos);
  EXPECT_NE(error_of({"--etcd", "http://a:1", "--unknown"}).find("option '--unknown'"),
            std::string::npos);
  EXPECT_EQ(error_of({"--etcd", "http://a:1"}).find('\''), std::string::npos);
}

TEST(ToolCallTest, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(usage_of({"--help"}).exit_code, 0);
  EXPECT_EQ(usage_of({"statuss", "--help"}).exit_code, 0);
  EXPECT_NE(usage_of({"--help"}).out.find("failover"), std::string::npos);
  EXPECT_EQ(usage_of({"--version"}).out, "bloomery-cluster " BLOOMERY_VERSION "\n");
}

}  // namespace
}  // namespace server::cluster
