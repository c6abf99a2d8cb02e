// SPDX-License-Identifier: MIT
#include "server/admin/http_connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpConnectionTest : public ::testing::Test {
 protected:
  HttpConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_ = ends[0];
    connection_ = std::make_shared<HttpConnection>(
        HttpConnection::Parts{.context = context_,
                              .descriptor = ends[1],
                              .stream = std::make_unique<SocketStream>(ends[1]),
                              .peer = {"127.0.0.1:5", true},
                              .answer =
                                  [this](const HttpRequest& request, const Peer&) {
                                    ++answers_;
                                    if (request.path == "/later") {
                                      HttpResponse response;
                                      response.later = [this](HttpResponse::Deliver deliver) {
                                        deliver_ = std::move(deliver);
                                      };
                                      return response;
                                    }
                                    return plain_response(status_, request.path + body_);
                                  }},
        steady_us());
    connection_->start();
  }
  ~HttpConnectionTest() override {
    connection_->close();
    ::close(client_);
  }

  void send(const std::string& bytes) {
    ASSERT_EQ(::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    context_.poll();
    context_.restart();
  }
  std::string received() {
    std::string bytes;
    std::array<char, 65536> room;
    for (;;) {
      const ssize_t size = ::recv(client_, room.data(), room.size(), 0);
      if (size <= 0) {
        is_at_end_ = size == 0;
        return bytes;
      }
      bytes.append(room.data(), static_cast<size_t>(size));
      context_.poll();
      context_.restart();
    }
  }

  net::asio::io_context context_{1};
  std::shared_ptr<HttpConnection> connection_;
  int client_ = -1;
  unsigned status_ = 200;
  size_t answers_ = 0;
  HttpResponse::Deliver deliver_;  // delivers the response to "/later"
  std::string body_;
  bool is_at_end_ = false;
};

TEST_F(HttpConnectionTest, AnswersOneAfterTheOther) {
  send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(received(), HasSubstr("\r\n\r\n/a\n"));
  send("GET /b HT");
  EXPECT_EQ(received(), "");
  send("TP/1.1\r\n\r\n");
  EXPECT_THAT(received(), HasSubstr("\r\n\r\n/b\n"));
  EXPECT_FALSE(connection_->is_closed());
}

TEST_F(HttpConnectionTest, AnswersRequestsThatComeTogether) {
  send(
      "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string bytes = received();
  EXPECT_THAT(bytes, HasSubstr("\r\n\r\n/a\nHTTP/1.1 200"));
  EXPECT_THAT(bytes, HasSubstr("\r\n\r\n/b\nHTTP/1.1 200"));
  EXPECT_THAT(bytes, HasSubstr("\r\n\r\n/c\n"));
  EXPECT_TRUE(is_at_end_);
}

TEST_F(HttpConnectionTest, AnAnswerMayComeLater) {
  send("GET /later HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
  EXPECT_EQ(received(), "");
  deliver_(plain_response(200, "at last"));
  // deliver_() only passes the response to the connection's thread, which sends it later.
  EXPECT_EQ(received(), "");
  send("");
  const std::string bytes = received();
  EXPECT_THAT(bytes, HasSubstr("\r\n\r\nat last\nHTTP/1.1 200"));
  EXPECT_THAT(bytes, HasSubstr("\r\n\r\n/b\n"));
  EXPECT_EQ(answers_, 2U);
}

TEST_F(HttpConnectionTest, AnAnswerMayComeTooLate) {
  send("GET /later HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(connection_->is_late(steady_us()));
  EXPECT_TRUE(connection_->is_late(steady_us() + HttpConnection::kWaitMaxUs + 1'000'000));
  connection_->close();
  deliver_(plain_response(200, "too late"));
  context_.poll();
  EXPECT_EQ(received(), "");
}

TEST_F(HttpConnectionTest, TheAnswerToABodyIsNotLostWithTheConnection) {
  send("GET / HTTP/1.1\r\nContent-Length: 50000\r\n\r\n" + std::string(20000, 'x'));
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 413 "));
  EXPECT_TRUE(is_at_end_);
  send(std::string(20000, 'x'));
  ::shutdown(client_, SHUT_WR);
  context_.poll();
  EXPECT_TRUE(connection_->is_closed());
}

TEST_F(HttpConnectionTest, ClosesClientsThatSendWithoutEnd) {
  send("nonsense\r\n\r\n");
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 400 "));
  const std::string noise(16384, 'x');
  for (int i = 0; i < 1000 && !connection_->is_closed(); ++i) {
    (void)::send(client_, noise.data(), noise.size(), MSG_NOSIGNAL);
    context_.poll();
    context_.restart();
  }
  EXPECT_TRUE(connection_->is_closed());
}

TEST_F(HttpConnectionTest, GuessingAPasswordTakesAConnectionEach) {
  status_ = 401;
  send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(received(), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(is_at_end_);
}

TEST_F(HttpConnectionTest, AnAnswerWaitsForItsReader) {
  body_ = std::string(size_t{4} << 20, 'x');
  send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(connection_->is_late(steady_us()));
  EXPECT_TRUE(connection_->is_late(steady_us() + HttpConnection::kSendMaxUs + 1'000'000));
  EXPECT_GT(received().size(), body_.size());
  send("GET /b HTTP/1.1\r\n\r\n");
  EXPECT_GT(received().size(), body_.size());
}

// If a client does not read its responses, the server reads a few requests and leaves the others in
// the socket.
TEST_F(HttpConnectionTest, AReaderThatDoesNotReadIsNotAnsweredOn) {
  body_ = std::string(size_t{1} << 20, 'x');
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET /a HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 100; ++i) {
    (void)::send(client_, requests.data(), requests.size(), MSG_NOSIGNAL);
    context_.poll();
    context_.restart();
  }
  EXPECT_LE(answers_, 2U);
  EXPECT_FALSE(connection_->is_closed());
  EXPECT_TRUE(connection_->is_late(steady_us() + HttpConnection::kSendMaxUs + 1'000'000));
}

TEST_F(HttpConnectionTest, BytesThatDripInBuyNoTime) {
  const int64_t begun = steady_us();
  send("GET /healthz HTTP/1.1\r\nA: ");
  for (int i = 0; i < 50; ++i) send("a");
  EXPECT_FALSE(connection_->is_late(begun + HttpConnection::kRequestMaxUs / 2));
  EXPECT_TRUE(connection_->is_late(begun + HttpConnection::kRequestMaxUs + 1'000'000));
}

TEST_F(HttpConnectionTest, ARequestHasLessTimeThanThePauseBeforeIt) {
  const int64_t over = HttpConnection::kRequestMaxUs + 1'000'000;
  EXPECT_TRUE(connection_->is_late(steady_us() + over));
  send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(connection_->is_late(steady_us() + over));
  EXPECT_TRUE(connection_->is_late(steady_us() + HttpConnection::kIdleMaxUs + 1'000'000));
  send("GET");
  EXPECT_TRUE(connection_->is_late(steady_us() + over));
}

TEST_F(HttpConnectionTest, AClientThatGoesEndsIt) {
  send("GET /a HT");
  ::shutdown(client_, SHUT_RDWR);
  context_.poll();
  EXPECT_TRUE(connection_->is_closed());
}

}  // namespace
}  // namespace server::admin
