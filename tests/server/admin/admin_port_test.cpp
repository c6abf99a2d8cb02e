// SPDX-License-Identifier: MIT
//
// Tests requests to the admin port and their responses, on a socket pair.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/admin/http_connection.h"
#include "server/admin/site.h"
#include "tests/support/command_test.h"
#include "tests/support/socket_pair.h"
#include "tests/support/write_thread.h"

namespace server::admin {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AdminPortTest : public CommandTest {
 protected:
  // A connection to the admin port, with a socket pair and an event loop of its own.
  struct Visit {
    explicit Visit(AdminPortTest& test) {
      const int near = std::exchange(sockets.near, -1);
      connection = std::make_shared<HttpConnection>(
          HttpConnection::Parts{
              .context = context,
              .descriptor = near,
              .stream = std::make_unique<SocketStream>(near),
              .peer = {"127.0.0.1:5", true},
              .answer = [&test](const HttpRequest& request,
                                const Peer& peer) { return test.site_.answer(request, peer); }},
          steady_us());
      connection->start();
    }
    ~Visit() { connection->close(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    // Sends `bytes` and returns the whole response, followed by "(end)" if the server has closed
    // the connection.
    std::string ask(const std::string& bytes) {
      (void)::send(sockets.far, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      std::string all;
      std::array<char, 65536> room;
      while (true) {
        context.poll();
        context.restart();
        const ssize_t size = ::recv(sockets.far, room.data(), room.size(), 0);
        if (size <= 0) return size == 0 ? all + "(end)" : all;
        all.append(room.data(), static_cast<size_t>(size));
      }
    }

    net::asio::io_context context{1};
    SocketPair sockets;
    std::shared_ptr<HttpConnection> connection;
  };

  std::string ask(const std::string& bytes) { return Visit(*this).ask(bytes); }
  std::string get(const std::string& path, const std::string& headers = "") {
    return ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }
  std::string status_of(const std::string& path, const std::string& headers = "") {
    return get(path, headers).substr(0, 12);
  }

  static inline const std::string kDefault = "Authorization: Basic ZGVmYXVsdDpzZWNyZXQ=\r\n";
  static inline const std::string kWrong = "Authorization: Basic ZGVmYXVsdDp3cm9uZw==\r\n";
  Heartbeat heartbeat_{[](const std::function<void()>& answer) { answer(); }};
  WriteThread write_thread_{statistics_};
  Site site_{services_, heartbeat_, write_thread_.post()};
};

TEST_F(AdminPortTest, ProbesAnswer) {
  EXPECT_THAT(get("/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(get("/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(get("/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(get("/readyz"), EndsWith("\r\n\r\nready\n"));
  EXPECT_THAT(ask("HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"), EndsWith("\r\n\r\n"));
  EXPECT_THAT(ask("HEAD /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"), EndsWith("\r\n\r\n(end)"));
  EXPECT_THAT(ask("POST /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(status_of("/nope"), "HTTP/1.1 404");
}

TEST_F(AdminPortTest, OneConnectionServesManyRequests) {
  Visit visit(*this);
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(visit.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                EndsWith("\r\n\r\nok\n"));
  }
}

TEST_F(AdminPortTest, APasswordGuardsAllButProbes) {
  EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  EXPECT_EQ(status_of("/healthz"), "HTTP/1.1 200");
  const std::string refusal = get("/metrics");
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(refusal, HasSubstr("\r\nWWW-Authenticate: Basic"));
  EXPECT_EQ(status_of("/metrics", kWrong), "HTTP/1.1 401");
  EXPECT_EQ(status_of("/metrics", kDefault), "HTTP/1.1 200");
}

TEST_F(AdminPortTest, RulesOfAUserHold) {
  run({"ACL", "SETUSER", "default", "off"});
  run({"ACL", "SETUSER", "eve", "on", ">pw", "+info"});
  run({"ACL", "SETUSER", "bob", "on", ">pw", "+get", "~*"});
  EXPECT_EQ(status_of("/metrics"), "HTTP/1.1 401");
  EXPECT_EQ(status_of("/metrics", "Authorization: Basic ZXZlOnB3\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(status_of("/metrics", "Authorization: Basic Ym9iOnB3\r\n"), "HTTP/1.1 403");
}

TEST_F(AdminPortTest, PagesOfOthersLearnNothing) {
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: rebound.example:8080\r\n\r\n"),
              StartsWith("HTTP/1.1 403 "));
  const std::string answer = get("/metrics", "Origin: http://other.example\r\n");
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow-Origin")));
  EXPECT_THAT(answer, HasSubstr("\r\nCross-Origin-Resource-Policy: same-origin\r\n"));
  EXPECT_THAT(answer, HasSubstr("default-src 'none'"));
}

TEST_F(AdminPortTest, HalfRequestsEndWithTheirConnection) {
  const std::string whole = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    Visit visit(*this);
    EXPECT_EQ(visit.ask(whole.substr(0, size)), "") << size;
    ::shutdown(visit.sockets.far, SHUT_WR);
    EXPECT_EQ(visit.ask(""), "(end)") << size;
  }
  EXPECT_THAT(ask(whole), StartsWith("HTTP/1.1 200 "));
}

TEST_F(AdminPortTest, RejectsOrIgnoresUnusualRequests) {
  const std::string line = "GET / HTTP/1.1\r\n";
  const std::string chunked = line + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  std::string empty_lines;
  for (int i = 0; i < 5000; ++i) empty_lines += "\r\n";
  for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
           {chunked, "4"},
           {line + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "4"},
           {line + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "4"},
           {line + "Content-Length: -1\r\n\r\n", "4"},
           {line + "Host: a\r\nHost: b\r\n\r\n", "4"},
           {std::string("GET /\0 HTTP/1.1\r\n\r\n", 19), "4"},
           {"GET /%00 HTTP/1.1\r\n\r\n", "4"},
           {"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
           {"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"},
           {"GET http://other.example/metrics HTTP/1.1\r\n\r\n", "4"},
           {"CONNECT other.example:80 HTTP/1.1\r\n\r\n", "4"},
           {"GET / HTTP/9.9\r\n\r\n", "505"},
           {"GET /\r\n\r\n", "4"},
           {"*1\r\n$4\r\nPING\r\n", "4"},
           {empty_lines, "4"},
       }) {
    Visit visit(*this);
    std::string answer = visit.ask(request);
    ::shutdown(visit.sockets.far, SHUT_WR);
    answer += visit.ask("");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + status)) << request.substr(0, 60);
  }
}

TEST_F(AdminPortTest, LongHeadersAndBodiesAreRefused) {
  const std::string filler(9000, 'a');
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nA: " + filler), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("GET /" + filler), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + filler),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("PUT /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + filler),
              StartsWith("HTTP/1.1 405 "));
  // The first bytes of a TLS handshake.
  const std::string greeting("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15);
  const std::string refusal = ask(greeting);
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(refusal, EndsWith("(end)"));
}

TEST_F(AdminPortTest, MetricsFollowTheServer) {
  EXPECT_THAT(get("/metrics"), HasSubstr("\nbf_bloom_num_objects 0\n"));
  run({"BF.RESERVE", "f", "0.001", "1000"});
  for (int i = 0; i < 500; ++i) run({"BF.ADD", "f", std::to_string(i)});
  const std::string after = get("/metrics");
  const auto value = [&after](const std::string& name) {
    const size_t start = after.find("\n" + name + " ");
    EXPECT_NE(start, std::string::npos) << name;
    return start == std::string::npos ? -1 : std::stod(after.substr(start + name.size() + 2));
  };
  const std::string label = "{db=\"db0\",key=\"f\"}";
  EXPECT_EQ(value("bf_bloom_num_objects"), 1);
  EXPECT_EQ(value("bloomery_filter_items" + label), 500);
  EXPECT_EQ(value("bloomery_filter_layers" + label), 1);
  EXPECT_GT(value("bloomery_filter_fill_ratio" + label), 0.2);
  EXPECT_LT(value("bloomery_filter_predicted_error_rate" + label), 0.001);
  EXPECT_EQ(value("redis_commands_total{cmd=\"bf.add\"}"), 500);
  EXPECT_EQ(value("redis_commands_latencies_usec_count{cmd=\"bf.add\"}"), 500);
}

}  // namespace
}  // namespace server::admin
