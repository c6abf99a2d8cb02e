// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/cluster/scripted_etcd.h"

namespace server::cluster {
namespace {

// This timeout is so long that a call does not time out while a thread stalls.
constexpr std::chrono::seconds kCallLimit{10};

// Returns a transaction that writes the key.
EtcdTxn put(const std::string& key) {
  return {{}, {EtcdPut{key, "1"}}};
}

class EtcdClientTest : public testing::Test {
 protected:
  std::unique_ptr<EtcdClient> connect(const ScriptedEtcd& etcd) {
    auto client = EtcdClient::make(io_, {.endpoints = {etcd.url()}, .call_limit = kCallLimit});
    EXPECT_TRUE(client);
    return *std::move(client);
  }

  // Waits for the result of one call.
  template <class Reply>
  EtcdResult<Reply> wait(const std::function<void(EtcdHandler<Reply>)>& call) {
    std::optional<EtcdResult<Reply>> result;
    call([&](EtcdResult<Reply> arrived) { result = std::move(arrived); });
    EXPECT_FALSE(result) << "called inside of the call";
    EXPECT_TRUE(run_until(io_, [&] { return result.has_value(); }));
    return result.value_or(EtcdResult<Reply>{});
  }

  boost::asio::io_context io_;
};

TEST_F(EtcdClientTest, RefusesEndpointsThatAreNone) {
  EXPECT_FALSE(EtcdClient::make(io_, {}));
  EXPECT_FALSE(EtcdClient::make(io_, {.endpoints = {"a:1"}}));
  EXPECT_FALSE(EtcdClient::make(io_, {.endpoints = {"https://a:1"}, .ca_file = {"/nowhere"}}));
  EXPECT_FALSE(EtcdClient::make(io_, {.endpoints = {"https://a:1"}, .cert_file = {"/nowhere"}}));
  EXPECT_FALSE(EtcdClient::make(
      io_, {.endpoints = {"https://a:1"}, .cert_file = {"/nowhere"}, .key_file = {"/nowhere"}}));
}

TEST_F(EtcdClientTest, CallsGoToTheirPaths) {
  ScriptedEtcd etcd(io_, [](const std::string& request) {
    const std::string path = request.substr(5, request.find(' ', 5) - 5);
    if (path == "/v3/lease/keepalive") return http_reply(R"({"result":{"ID":"7","TTL":"3"}})");
    if (path == "/v3/lease/grant") return http_reply(R"({"ID":"7","TTL":"5"})");
    if (path == "/v3/kv/txn") return http_reply(R"({"header":{"revision":"4"},"succeeded":true})");
    if (path == "/v3/lease/revoke") return http_reply(R"({"header":{"revision":"5"}})");
    if (path == "/v3/kv/range") return http_reply(R"({"header":{"revision":"2"}})");
    return http_reply("404 page not found", "404 Not Found");
  });
  const auto client = connect(etcd);
  EXPECT_EQ(wait<EtcdRangeReply>([&](auto h) { client->range({"a"}, h); }).reply.revision, 2U);
  EXPECT_TRUE(wait<EtcdTxnReply>([&](auto h) { client->txn({}, h); }).reply.succeeded);
  EXPECT_EQ(wait<EtcdLeaseReply>([&](auto h) { client->grant(5, h); }).reply.lease, 7U);
  EXPECT_EQ(wait<EtcdLeaseReply>([&](auto h) { client->keep_alive(7, h); }).reply.ttl_s, 3U);
  EXPECT_TRUE(wait<EtcdRevokeReply>([&](auto h) { client->revoke(7, h); }).answered());
  EXPECT_EQ(etcd.connections(), 1U);
}

TEST_F(EtcdClientTest, CallsRunAtTheSameTimeAndEachHasItsReply) {
  uint64_t revision = 0;
  ScriptedEtcd etcd(io_, [&](const std::string&) {
    return http_reply("{\"header\":{\"revision\":\"" + std::to_string(++revision) + "\"}}");
  });
  const auto client = connect(etcd);
  std::set<uint64_t> revisions;
  for (int i = 0; i < 50; ++i) {
    client->txn(put("k" + std::to_string(i)), [&](const EtcdResult<EtcdTxnReply>& result) {
      EXPECT_TRUE(result.answered());
      revisions.insert(result.reply.revision);
    });
  }
  ASSERT_TRUE(run_until(io_, [&] { return revisions.size() == 50; }));
  EXPECT_EQ(*revisions.rbegin(), 50U);
}

TEST_F(EtcdClientTest, ReplyThatIsNoneLeavesTheOutcomeUnknown) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return http_reply("{\"header\":[]}"); });
  const auto client = connect(etcd);
  const auto result = wait<EtcdTxnReply>([&](auto handler) { client->txn(put("a"), handler); });
  EXPECT_EQ(result.outcome, EtcdOutcome::kUnknown);
  EXPECT_EQ(result.error, (EtcdError{EtcdCode::kInternal, "etcd's reply: 'header' is no object"}));
}

TEST_F(EtcdClientTest, ReportsEachResultToTheListener) {
  ScriptedEtcd etcd(io_, [](const std::string& request) {
    if (request.starts_with("POST /v3/watch")) {
      return http_stream("{\"result\":{\"created\":true}}\n");
    }
    if (request.starts_with("POST /v3/kv/txn")) {
      return http_reply(R"({"code":7,"message":"denied"})", "403 Forbidden");
    }
    if (request.starts_with("POST /v3/lease/grant")) return http_reply(R"({"ID":"7","TTL":"5"})");
    return http_reply("{}");
  });
  const auto client = connect(etcd);
  std::vector<std::pair<EtcdRequest, EtcdCode>> results;
  client->on_result([&](EtcdRequest request, const EtcdError& error) {
    results.emplace_back(request, error.code);
  });
  wait<EtcdRangeReply>([&](auto h) { client->range({"a"}, h); });
  wait<EtcdTxnReply>([&](auto h) { client->txn(put("a"), h); });
  wait<EtcdTxnReply>([&](auto h) { client->txn({{}, {EtcdRange{"a"}}}, h); });
  wait<EtcdLeaseReply>([&](auto h) { client->grant(5, h); });
  client->watch({"a"}, [](const auto&) {});
  EXPECT_TRUE(run_until(io_, [&] { return results.size() == 5; }));
  using enum EtcdRequest;
  const std::vector<std::pair<EtcdRequest, EtcdCode>> expected{
      {kRead, EtcdCode::kOk},
      {kChange, EtcdCode::kPermissionDenied},
      {kRead, EtcdCode::kPermissionDenied},
      {kLease, EtcdCode::kOk},
      {kWatch, EtcdCode::kOk}};
  EXPECT_EQ(results, expected);
}

TEST_F(EtcdClientTest, ReportsAMissingServerAsRefused) {
  const auto client =
      *EtcdClient::make(io_, {.endpoints = {"http://127.0.0.1:1", "http://127.0.0.1:2"}});
  const auto read = wait<EtcdRangeReply>([&](auto h) { client->range({"a"}, h); });
  EXPECT_EQ(read.outcome, EtcdOutcome::kRefused);
  EXPECT_NE(read.error.message.find("Connection refused"), std::string::npos);
  const auto written = wait<EtcdTxnReply>([&](auto h) { client->txn(put("a"), h); });
  EXPECT_EQ(written.outcome, EtcdOutcome::kRefused) << "no server has received it";
  EXPECT_NE(written.error.message.find("Connection refused"), std::string::npos);
}

TEST_F(EtcdClientTest, AFirstEndpointThatIsDownIsPassedOver) {
  ScriptedEtcd etcd(
      io_, [](const std::string&) { return http_reply(R"({"header":{"revision":"3"}})"); });
  const auto client = *EtcdClient::make(
      io_, {.endpoints = {"http://127.0.0.1:1", etcd.url()}, .call_limit = kCallLimit});
  EXPECT_EQ(wait<EtcdTxnReply>([&](auto h) { client->txn(put("a"), h); }).reply.revision, 3U);
}

TEST_F(EtcdClientTest, AServerThatIsNotEtcdIsPassedOver) {
  ScriptedEtcd other(io_, [](const std::string&) { return http_reply("<html></html>"); });
  ScriptedEtcd etcd(
      io_, [](const std::string&) { return http_reply(R"({"header":{"revision":"2"}})"); });
  const auto client =
      *EtcdClient::make(io_, {.endpoints = {other.url(), etcd.url()}, .call_limit = kCallLimit});
  const auto range = [&](auto handler) { client->range({"a"}, handler); };
  EXPECT_FALSE(wait<EtcdRangeReply>(range).answered());
  EXPECT_EQ(wait<EtcdRangeReply>(range).reply.revision, 2U);
}

TEST_F(EtcdClientTest, NoHandlerRunsOnceItIsDestroyed) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return std::string(); });
  auto client = connect(etcd);
  int handled = 0;
  client->range({"a"}, [&](const auto&) { ++handled; });
  client->txn(put("a"), [&](const auto&) { ++handled; });
  client->watch({"a"}, [&](const auto&) { ++handled; });
  ASSERT_TRUE(run_until(io_, [&] { return etcd.requests().size() == 3; }));
  client.reset();
  io_.restart();
  io_.run_for(std::chrono::milliseconds(50));
  EXPECT_EQ(handled, 0);
}

TEST_F(EtcdClientTest, HandlerMayDestroyTheClient) {
  ScriptedEtcd etcd(io_, [](const std::string& request) {
    const bool watches = request.starts_with("POST /v3/watch");
    return watches ? http_stream("{\"result\":{\"created\":true}}\n") : http_reply("{}");
  });
  auto client = connect(etcd);
  client->range({"a"}, [&](const auto&) { client.reset(); });
  EXPECT_TRUE(run_until(io_, [&] { return client == nullptr; }));
  client = connect(etcd);
  client->watch({"a"}, [&](const auto&) { client.reset(); });
  EXPECT_TRUE(run_until(io_, [&] { return client == nullptr; }));
}

}  // namespace
}  // namespace server::cluster
