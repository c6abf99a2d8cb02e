// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/cluster/scripted_etcd.h"

namespace server::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kNothing;

class EtcdCallsTest : public testing::Test {
 protected:
  ~EtcdCallsTest() override {
    if (calls_) calls_->stop();
  }

  // `limit`: shorter only for calls that last until it.
  void connect(const std::vector<std::string>& urls, std::string user = {},
               milliseconds limit = seconds(10)) {
    std::vector<EtcdEndpoint> endpoints;
    for (const std::string& url : urls) endpoints.push_back(*parse_etcd_endpoint(url));
    calls_ = std::make_shared<EtcdCalls>(
        io_, EtcdOptions{.user = std::move(user), .password = "p", .call_limit = limit}, endpoints,
        nullptr);
  }

  EtcdAnswer call(bool only_reads = false) {
    // Shared: a handler that comes too late must not reach into this function.
    const auto answer = std::make_shared<std::optional<EtcdAnswer>>();
    calls_->start({"/v3/x", "{}", only_reads, [answer](EtcdAnswer arrived) { *answer = arrived; }});
    EXPECT_TRUE(run_until(io_, [&] { return answer->has_value(); }));
    return answer->value_or(EtcdAnswer{});
  }

  static constexpr bool kReads = true;
  boost::asio::io_context io_;
  std::shared_ptr<EtcdCalls> calls_;
};

std::string ok(const std::string&) {
  return http_reply("ok");
}
std::string hang_up(const std::string&) {
  return std::string(ScriptedEtcd::kHangUp);
}
std::string silent(const std::string&) {
  return kNothing;
}
std::string no_leader(const std::string&) {
  return http_reply(R"({"code":14,"message":"no leader"})", "503 Service Unavailable");
}

TEST_F(EtcdCallsTest, MemberThatIsNotThereIsPassedOver) {
  ScriptedEtcd second(io_, ok);
  connect({"http://127.0.0.1:1", second.url()});
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(calls_->current(), 1U);
}

TEST_F(EtcdCallsTest, NobodyThereIsARefusal) {
  connect({"http://127.0.0.1:1", "http://127.0.0.1:2"});
  const EtcdAnswer answer = call();
  EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
  EXPECT_EQ(answer.error.code, EtcdCode::kUnavailable);
}

TEST_F(EtcdCallsTest, ReadsGoToTheNextMemberWhenOneFails) {
  for (const auto& failing : {hang_up, no_leader}) {
    ScriptedEtcd first(io_, failing);
    ScriptedEtcd second(io_, ok);
    connect({first.url(), second.url()});
    EXPECT_EQ(call(kReads).outcome, EtcdOutcome::kAnswered);
    EXPECT_EQ(first.requests().size(), 1U);
  }
}

TEST_F(EtcdCallsTest, ChangesAreSentOnce) {
  for (const auto& failing : {hang_up, no_leader, silent}) {
    ScriptedEtcd first(io_, failing);
    ScriptedEtcd second(io_, ok);
    connect({first.url(), second.url()}, {}, seconds(1));
    EXPECT_EQ(call().outcome, EtcdOutcome::kUnknown);
    EXPECT_TRUE(second.requests().empty());
    // The next one goes to the other member.
    EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  }
}

TEST_F(EtcdCallsTest, SilenceEndsAtTheLimit) {
  ScriptedEtcd etcd(io_, silent);
  connect({etcd.url()}, {}, seconds(1));
  const auto started = std::chrono::steady_clock::now();
  const EtcdAnswer answer = call(kReads);
  EXPECT_EQ(answer.outcome, EtcdOutcome::kUnknown);
  EXPECT_EQ(answer.error.code, EtcdCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - started, seconds(5));
}

TEST_F(EtcdCallsTest, RefusalIsFinal) {
  ScriptedEtcd first(io_, [](const std::string&) {
    return http_reply(R"({"code":5,"message":"lease not found"})", "404 Not Found");
  });
  ScriptedEtcd second(io_, ok);
  connect({first.url(), second.url()});
  const EtcdAnswer answer = call();
  EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
  EXPECT_EQ(answer.error, (EtcdError{EtcdCode::kNotFound, "lease not found"}));
  EXPECT_EQ(calls_->current(), 0U);
}

TEST_F(EtcdCallsTest, ConnectionsAreKept) {
  ScriptedEtcd etcd(io_, ok);
  connect({etcd.url()});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call().body, "ok");
  EXPECT_EQ(etcd.connections(), 1U);
}

// A change must not be lost with a connection that was closed while it was idle.
TEST_F(EtcdCallsTest, ConnectionThatWasClosedMeanwhileIsNotUsed) {
  ScriptedEtcd etcd(io_, ok);
  connect({etcd.url()});
  call();
  etcd.hang_up();
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(etcd.connections(), 2U);
}

TEST_F(EtcdCallsTest, HostileRepliesLeaveTheOutcomeUnknown) {
  for (const std::string& reply : {std::string("nonsense\r\n\r\n"),
                                   std::string("HTTP/1.1 200 OK\r\nContent-Length: 9999999"
                                               "99999\r\n\r\n"),
                                   "HTTP/1.1 200 OK\r\nX: " + std::string(30000, 'x')}) {
    ScriptedEtcd etcd(io_, [&](const std::string&) { return reply; });
    connect({etcd.url()});
    EXPECT_EQ(call().outcome, EtcdOutcome::kUnknown);
  }
}

TEST_F(EtcdCallsTest, TokenIsFetchedSentAndFetchedAnew) {
  int tokens = 0;
  std::string valid = "t1";
  ScriptedEtcd etcd(io_, [&](const std::string& request) {
    if (request.starts_with("POST /v3/auth/authenticate")) {
      return http_reply("{\"token\":\"t" + std::to_string(++tokens) + "\"}");
    }
    if (request.find("Authorization: " + valid + "\r\n") != std::string::npos) return ok(request);
    return http_reply(R"({"code":16,"message":"invalid auth token"})", "401 Unauthorized");
  });
  connect({etcd.url()}, "u");
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(tokens, 1);
  valid = "t2";
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(tokens, 2);
  valid = "none";
  const EtcdAnswer answer = call();
  EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
  EXPECT_EQ(answer.error.code, EtcdCode::kUnauthenticated);
  EXPECT_EQ(tokens, 3);
}

TEST_F(EtcdCallsTest, AWrongPasswordIsARefusal) {
  ScriptedEtcd etcd(io_, [](const std::string& request) {
    if (!request.starts_with("POST /v3/auth/authenticate")) return ok(request);
    return http_reply(R"({"code":3,"message":"etcdserver: authentication failed"})",
                      "400 Bad Request");
  });
  connect({etcd.url()}, "u");
  const EtcdAnswer answer = call();
  EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
  EXPECT_NE(answer.error.message.find("authentication failed"), std::string::npos);
  EXPECT_EQ(etcd.requests().size(), 1U) << "nothing was asked for without a token";
}

TEST_F(EtcdCallsTest, WhereAUserIsWantedNobodyIsRefused) {
  ScriptedEtcd etcd(io_, [](const std::string&) {
    return http_reply(R"({"code":3,"message":"etcdserver: user name is empty"})",
                      "400 Bad Request");
  });
  connect({etcd.url()});
  EXPECT_EQ(call().outcome, EtcdOutcome::kRefused);
}

// etcd takes its time to check a password; calls that give up must not have it begin anew.
TEST_F(EtcdCallsTest, SlowAuthenticationIsAskedForOnce) {
  ScriptedEtcd etcd(io_, [](const std::string& request) {
    return request.starts_with("POST /v3/auth/authenticate") ? kNothing : ok(request);
  });
  connect({etcd.url()}, "u", seconds(1));
  for (int i = 0; i < 3; ++i) {
    const EtcdAnswer answer = call();
    EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
    EXPECT_EQ(answer.error.code, EtcdCode::kDeadlineExceeded);
  }
  ASSERT_EQ(etcd.requests().size(), 1U);
  etcd.send(http_reply(R"({"token":"t"})"));
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(etcd.requests().size(), 2U);
}

TEST_F(EtcdCallsTest, AuthenticationMayBeSwitchedOnLater) {
  bool is_on = false;
  ScriptedEtcd etcd(io_, [&](const std::string& request) {
    if (request.starts_with("POST /v3/auth/authenticate")) {
      return is_on ? http_reply(R"({"token":"t"})")
                   : http_reply(R"({"code":9,"message":"authentication is not enabled"})",
                                "400 Bad Request");
    }
    if (!is_on || request.find("Authorization: t") != std::string::npos) return ok(request);
    return http_reply(R"({"code":3,"message":"etcdserver: user name is empty"})",
                      "400 Bad Request");
  });
  connect({etcd.url()}, "u");
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  is_on = true;
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
}

}  // namespace
}  // namespace server::cluster
