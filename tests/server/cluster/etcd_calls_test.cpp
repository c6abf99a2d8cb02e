// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/cluster/scripted_etcd.h"
#include "tests/support/waiting.h"

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

  // `limit` is the timeout of a call. Only tests of calls that time out make it shorter.
  void connect(const std::vector<std::string>& urls, std::string user = {},
               milliseconds limit = seconds(10), milliseconds token_limit = seconds(10),
               milliseconds token_pause = seconds(60)) {
    std::vector<EtcdEndpoint> endpoints;
    for (const std::string& url : urls) endpoints.push_back(*parse_etcd_endpoint(url));
    calls_ = std::make_shared<EtcdCalls>(io_,
                                         EtcdOptions{.user = std::move(user),
                                                     .password = "p",
                                                     .call_limit = limit,
                                                     .token_limit = token_limit,
                                                     .token_pause = token_pause},
                                         endpoints, nullptr);
  }

  EtcdAnswer call(bool may_be_repeated = false) {
    // The answer is shared with the handler, because the handler may run after this function has
    // returned.
    const auto answer = std::make_shared<std::optional<EtcdAnswer>>();
    calls_->start({"/v3/x", "{}", may_be_repeated, [answer](EtcdAnswer arrived) {
                     *answer = arrived;
                     return true;
                   }});
    EXPECT_TRUE(run_until(io_, [&] { return answer->has_value(); }));
    return answer->value_or(EtcdAnswer{});
  }

  // The received lines of a stream, and the error that has ended the stream.
  struct Streamed {
    std::vector<std::string> lines;
    EtcdError end;
  };
  std::shared_ptr<Streamed> stream(milliseconds silence_max = seconds(10)) {
    const auto streamed = std::make_shared<Streamed>();
    stream_ = {"/v3/watch", "{}",
               [streamed](std::string_view line) {
                 streamed->lines.emplace_back(line);
                 return EtcdError{};
               },
               silence_max};
    boost::asio::co_spawn(io_, calls_->run_stream(calls_->make_link(), stream_),
                          [streamed](std::exception_ptr, EtcdError end) { streamed->end = end; });
    return streamed;
  }

  static constexpr bool kReads = true;
  boost::asio::io_context io_;
  std::shared_ptr<EtcdCalls> calls_;
  EtcdCalls::Stream stream_;
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

TEST(EtcdEndpointTest, IsAUrlWithAPort) {
  const auto read = [](std::string_view url) {
    const auto endpoint = parse_etcd_endpoint(url);
    return endpoint ? *endpoint : EtcdEndpoint{};
  };
  EXPECT_EQ(read("http://10.0.0.1:2379"), (EtcdEndpoint{"10.0.0.1", 2379, false}));
  EXPECT_EQ(read("https://etcd-1.example/"), (EtcdEndpoint{"etcd-1.example", 2379, true}));
  EXPECT_EQ(read("http://[::1]:1"), (EtcdEndpoint{"::1", 1, false}));
  EXPECT_EQ(read("http://[::1]:1").url(), "http://[::1]:1");
  EXPECT_EQ(read("https://a:9").url(), "https://a:9");
}

TEST(EtcdEndpointTest, RefusesWhatIsNone) {
  for (const std::string_view url :
       {"", "a:1", "ftp://a:1", "http://", "http://:1", "http://a:", "http://a:0", "http://a:65536",
        "http://a:1/x", "http://a b:1", "http://a\r\n:1", "http://[::1", "http://[x]:1",
        "http://[::1]1", "http://u@a:1"}) {
    EXPECT_FALSE(parse_etcd_endpoint(url)) << url;
  }
}

TEST(EtcdEndpointTest, ErrorRepeatsNoPassword) {
  const auto endpoint = parse_etcd_endpoint("http://user:secret@a:1");
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().message.find("secret"), std::string::npos);
  EXPECT_NE(endpoint.error().message.find("--password-file"), std::string::npos);
}

TEST_F(EtcdCallsTest, MemberThatIsNotThereIsPassedOver) {
  ScriptedEtcd second(io_, ok);
  connect({"http://127.0.0.1:1", second.url()});
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(calls_->current(), 1U);
}

TEST_F(EtcdCallsTest, ReportsAMissingServerAsRefused) {
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
    connect({first.url(), second.url()}, {}, seconds(failing == silent ? 3 : 10));
    EXPECT_EQ(call().outcome, EtcdOutcome::kUnknown);
    EXPECT_TRUE(second.requests().empty());
    // The first etcd member has failed, so the next call goes to the second etcd member.
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
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call().reply, "ok");
  EXPECT_EQ(etcd.connections(), 1U);
}

// A call that changes keys must not use an idle connection that the etcd member has closed. The
// outcome of such a call would be unknown.
TEST_F(EtcdCallsTest, ConnectionThatWasClosedMeanwhileIsNotUsed) {
  ScriptedEtcd etcd(io_, ok);
  connect({etcd.url()});
  call();
  etcd.hang_up();
  EXPECT_EQ(call().outcome, EtcdOutcome::kAnswered);
  EXPECT_EQ(etcd.connections(), 2U);
}

TEST_F(EtcdCallsTest, ReplyThatForbidsItClosesTheConnection) {
  for (const std::string& reply :
       {std::string("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        ok("") + "HTTP/1.1 200"}) {
    ScriptedEtcd etcd(io_, [&](const std::string&) { return reply; });
    connect({etcd.url()});
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call().reply, "ok");
    EXPECT_EQ(etcd.connections(), 2U);
  }
}

TEST_F(EtcdCallsTest, RequestNamesHostAndLength) {
  ScriptedEtcd etcd(io_, ok);
  connect({etcd.url()});
  EXPECT_EQ(call().reply, "ok");
  const std::string& request = etcd.requests().front();
  EXPECT_TRUE(request.starts_with("POST /v3/x HTTP/1.1\r\n")) << request;
  for (const std::string& line :
       {"Host: " + etcd.url().substr(7), std::string("Content-Type: application/json"),
        std::string("Grpc-Metadata-hasleader: true"), std::string("Content-Length: 2")}) {
    EXPECT_NE(request.find(line + "\r\n"), std::string::npos) << request;
  }
}

TEST_F(EtcdCallsTest, HostsAreFoundByName) {
  ScriptedEtcd etcd(io_, ok);
  const std::string port = etcd.url().substr(etcd.url().rfind(':'));
  connect({"http://localhost" + port});
  EXPECT_EQ(call().reply, "ok");
  // The label is too long for DNS (RFC 1035, 2.3.4), so the test does not wait for a name server.
  connect({"http://" + std::string(64, 'a') + ".invalid" + port});
  const EtcdAnswer answer = call();
  EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
  EXPECT_NE(answer.error.message.find(": address: "), std::string::npos) << answer.error.message;
}

TEST_F(EtcdCallsTest, ReplyMayComeInPieces) {
  const std::string whole = http_reply("{}");
  for (size_t cut = 1; cut < whole.size(); cut += 7) {
    ScriptedEtcd etcd(io_, [&](const std::string&) { return whole.substr(0, cut); });
    connect({etcd.url()});
    std::optional<EtcdAnswer> answer;
    calls_->start({"/v3/x", "{}", false, [&](EtcdAnswer arrived) {
                     answer = arrived;
                     return true;
                   }});
    ASSERT_TRUE(run_until(io_, [&] { return !etcd.requests().empty(); }));
    io_.run_for(milliseconds(1));
    etcd.send(whole.substr(cut));
    ASSERT_TRUE(run_until(io_, [&] { return answer.has_value(); }));
    EXPECT_EQ(answer->reply, "{}") << cut;
    calls_->stop();
  }
}

TEST_F(EtcdCallsTest, TornReplyLeavesTheOutcomeUnknown) {
  const std::string whole = http_reply("{}");
  for (size_t cut = 1; cut < whole.size(); cut += 7) {
    ScriptedEtcd etcd(io_, [&](const std::string&) { return whole.substr(0, cut); });
    connect({etcd.url()});
    std::optional<EtcdAnswer> answer;
    calls_->start({"/v3/x", "{}", false, [&](EtcdAnswer arrived) {
                     answer = arrived;
                     return true;
                   }});
    ASSERT_TRUE(run_until(io_, [&] { return !etcd.requests().empty(); }));
    io_.run_for(milliseconds(1));
    etcd.hang_up();
    ASSERT_TRUE(run_until(io_, [&] { return answer.has_value(); }));
    EXPECT_EQ(answer->outcome, EtcdOutcome::kUnknown) << cut;
  }
}

TEST_F(EtcdCallsTest, StreamIsReadLineByLine) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return http_stream("{\"a\""); });
  connect({etcd.url()});
  const auto streamed = stream();
  ASSERT_TRUE(run_until(io_, [&] { return !etcd.requests().empty(); }));
  io_.run_for(milliseconds(1));
  EXPECT_TRUE(streamed->lines.empty());
  etcd.send(http_chunk(":1}\n") + http_chunk("{}\n\n[]\n{"));
  ASSERT_TRUE(run_until(io_, [&] { return streamed->lines.size() == 3; }));
  EXPECT_EQ(streamed->lines, (std::vector<std::string>{R"({"a":1})", "{}", "[]"}));
}

TEST_F(EtcdCallsTest, StreamOfAnErrorIsAReply) {
  ScriptedEtcd etcd(io_, no_leader);
  connect({etcd.url()});
  const auto streamed = stream();
  ASSERT_TRUE(run_until(io_, [&] { return streamed->end.code != EtcdCode::kOk; }));
  EXPECT_EQ(streamed->end, (EtcdError{EtcdCode::kUnavailable, "no leader"}));
  EXPECT_TRUE(streamed->lines.empty());
}

TEST_F(EtcdCallsTest, SilentStreamEndsAtItsDeadline) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return http_stream("{}\n"); });
  connect({etcd.url()});
  const auto streamed = stream(seconds(1));
  ASSERT_TRUE(run_until(io_, [&] { return streamed->end.code != EtcdCode::kOk; }));
  EXPECT_EQ(streamed->lines.size(), 1U);
  EXPECT_NE(streamed->end.message.find("timeout"), std::string::npos) << streamed->end.message;
}

// The client limits the length of each line of a stream, but not the length of the whole stream. It
// reserves no memory for a received Content-Length.
TEST_F(EtcdCallsTest, StreamHasNoBoundAsAWhole) {
  const std::string chunk = http_chunk(std::string(1'000'000, 'x') + "\n");
  std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 12; ++i) text += chunk;
  ScriptedEtcd etcd(io_, [&](const std::string&) { return text; });
  connect({etcd.url()});
  const auto streamed = stream();
  EXPECT_TRUE(run_until(io_, [&] { return streamed->lines.size() == 12; }));
  text = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000\r\n\r\n{}\n";
  const auto promised = stream();
  EXPECT_TRUE(run_until(io_, [&] { return promised->lines.size() == 1; }));
}

TEST_F(EtcdCallsTest, HostileRepliesLeaveTheOutcomeUnknown) {
  const std::string header = "HTTP/1.1 200 OK\r\n";
  std::string endless = header + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 9; ++i) endless += http_chunk(std::string(1'000'000, 'x'));
  for (const std::string& reply :
       {std::string("nonsense\r\n\r\n"), std::string("SSH-2.0-x\r\n\r\n"),
        std::string("HTTP/1.1 abc OK\r\n\r\n"), std::string("HTTP/9.9 200 OK\r\n\r\n"),
        header + "Content-Length: -1\r\n\r\n", header + "Content-Length: 9000000\r\n\r\n",
        header + "Content-Length: 99999999999999999999\r\n\r\n",
        header + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        header + "X: " + std::string(30000, 'x'), endless}) {
    ScriptedEtcd etcd(io_, [&](const std::string&) { return reply; });
    connect({etcd.url()});
    EXPECT_EQ(call().outcome, EtcdOutcome::kUnknown);
  }
}

TEST_F(EtcdCallsTest, FetchesSendsAndRenewsTheToken) {
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
  EXPECT_EQ(call().error, answer.error);
  EXPECT_EQ(etcd.requests().size(), 1U) << "the password is not checked again at once";
}

TEST_F(EtcdCallsTest, CorrectedPasswordIsAcceptedAfterAPause) {
  bool is_right = false;
  ScriptedEtcd etcd(io_, [&](const std::string& request) {
    if (!request.starts_with("POST /v3/auth/authenticate")) return ok(request);
    return is_right ? http_reply(R"({"token":"t"})")
                    : http_reply(R"({"code":3,"message":"etcdserver: authentication failed"})",
                                 "400 Bad Request");
  });
  connect({etcd.url()}, "u", seconds(10), seconds(10), milliseconds(1));
  EXPECT_EQ(call().outcome, EtcdOutcome::kRefused);
  is_right = true;
  EXPECT_TRUE(support::wait_until([&] { return call().outcome == EtcdOutcome::kAnswered; }));
}

TEST_F(EtcdCallsTest, CallsWithoutAUserAreRejected) {
  ScriptedEtcd etcd(io_, [](const std::string&) {
    return http_reply(R"({"code":3,"message":"etcdserver: user name is empty"})",
                      "400 Bad Request");
  });
  connect({etcd.url()});
  EXPECT_EQ(call().outcome, EtcdOutcome::kRefused);
}

// etcd takes long to check a password. After a timeout the client must not request the same check
// again.
TEST_F(EtcdCallsTest, SlowAuthenticationIsAskedForOnce) {
  const auto is_authentication = [](const std::string& request) {
    return request.starts_with("POST /v3/auth/authenticate");
  };
  ScriptedEtcd etcd(io_, [&](const std::string& request) {
    return is_authentication(request) ? kNothing : ok(request);
  });
  connect({etcd.url()}, "u", seconds(1));
  for (int i = 0; i < 3; ++i) {
    const EtcdAnswer answer = call();
    EXPECT_EQ(answer.outcome, EtcdOutcome::kRefused);
    EXPECT_EQ(answer.error.code, EtcdCode::kDeadlineExceeded);
  }
  ASSERT_EQ(etcd.requests().size(), 1U);
  etcd.send(http_reply(R"({"token":"t"})"));
  // On a busy machine, calls may take longer than their limit even now.
  EXPECT_TRUE(support::wait_until([&] { return call().outcome == EtcdOutcome::kAnswered; }));
  EXPECT_EQ(std::ranges::count_if(etcd.requests(), is_authentication), 1);
}

// Calls that wait for a token end before the request for the token. They must not move on, because
// then the next request could go to the hung member again.
TEST_F(EtcdCallsTest, HungMemberIsLeftWhenItsTokenIsLate) {
  ScriptedEtcd hung(io_, silent);
  ScriptedEtcd second(io_, [&](const std::string& request) {
    return request.starts_with("POST /v3/auth/authenticate") ? http_reply(R"({"token":"t"})")
                                                             : ok(request);
  });
  // The token is late in the middle of the third call, which then has time for the second member.
  connect({hung.url(), second.url()}, "u", milliseconds(600), milliseconds(1500));
  const EtcdAnswer early = call();
  EXPECT_NE(early.error.message.find(hung.url() + ": no token"), std::string::npos)
      << early.error.message;
  EXPECT_EQ(calls_->current(), 0U) << "the token is still requested there";
  EXPECT_TRUE(support::wait_until([&] { return call().outcome == EtcdOutcome::kAnswered; }));
  EXPECT_EQ(hung.requests().size(), 1U);
  EXPECT_EQ(calls_->current(), 1U);
}

// bloomery-cluster would give up at an error that says that no member can be reached.
TEST_F(EtcdCallsTest, LateTokenIsNotAnUnreachableMember) {
  ScriptedEtcd hung(io_, silent);
  connect({hung.url()}, "u", milliseconds(50), milliseconds(100));
  EXPECT_TRUE(support::wait_until([&] {
    EXPECT_EQ(call().error.code, EtcdCode::kDeadlineExceeded);
    return hung.requests().size() > 1;
  }));
}

// An overloaded member has not refused the password, so there is no pause.
TEST_F(EtcdCallsTest, OverloadedMemberIsLeftAtOnce) {
  ScriptedEtcd overloaded(io_, [](const std::string&) {
    return http_reply(R"({"code":8,"message":"etcdserver: too many requests"})",
                      "429 Too Many Requests");
  });
  ScriptedEtcd second(io_, [&](const std::string& request) {
    return request.starts_with("POST /v3/auth/authenticate") ? http_reply(R"({"token":"t"})")
                                                             : ok(request);
  });
  connect({overloaded.url(), second.url()}, "u", seconds(10), seconds(10), seconds(3600));
  EXPECT_TRUE(support::wait_until([&] { return call().outcome == EtcdOutcome::kAnswered; }));
  EXPECT_EQ(calls_->current(), 1U);
}

TEST_F(EtcdCallsTest, StreamThatAwaitsATokenMovesNothing) {
  ScriptedEtcd hung(io_, silent);
  connect({hung.url()}, "u");
  const EtcdCalls::LinkPointer link = calls_->make_link();
  stream_ = {"/v3/watch", "{}", [](std::string_view) { return EtcdError{}; }, seconds(10)};
  boost::asio::co_spawn(io_, calls_->run_stream(link, stream_),
                        [](std::exception_ptr, const EtcdError&) {});
  ASSERT_TRUE(run_until(io_, [&] { return hung.requests().size() == 1; }));
  EXPECT_FALSE(EtcdCalls::was_opened(link));
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
