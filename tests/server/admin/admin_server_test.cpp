// SPDX-License-Identifier: MIT
#include "server/admin/admin_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "server/transport/tls.h"
#include "tests/support/command_test.h"
#include "tests/support/loopback_listener.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class AdminServerTest : public CommandTest {
 protected:
  // A port that was free a moment ago.
  static uint16_t free_port() { return LoopbackListener().port(); }
  core::Result<> open(const std::string& bind = "127.0.0.1") {
    port_ = free_port();
    config_.replace(OptionId::kHttpPort, std::to_string(port_));
    config_.replace(OptionId::kHttpBind, bind);
    return server_.open();
  }
  int connect() const {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(port_);
    EXPECT_EQ(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    return descriptor;
  }
  static std::string ask(int descriptor) {
    const std::string request = "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string bytes;
    std::array<char, 4096> room;
    for (ssize_t size = 0; (size = ::recv(descriptor, room.data(), room.size(), 0)) > 0;) {
      bytes.append(room.data(), static_cast<size_t>(size));
    }
    ::close(descriptor);
    return bytes;
  }

  uint16_t port_ = 0;
  Tls tls_{config_};
  AdminServer server_{services_, tls_, [](std::function<void()> answer) { answer(); }};
};

TEST_F(AdminServerTest, WithoutPortThereIsNothing) {
  EXPECT_TRUE(server_.open());
  server_.start();
  server_.stop();
}

TEST_F(AdminServerTest, AnswersAndEnds) {
  ASSERT_TRUE(open());
  server_.start();
  EXPECT_THAT(ask(connect()), StartsWith("HTTP/1.1 200 OK"));
  const int idle = connect();
  server_.stop();
  char byte = 0;
  EXPECT_LE(::recv(idle, &byte, 1, 0), 0);
  ::close(idle);
  server_.stop();
}

TEST_F(AdminServerTest, SlowClientsGiveWayToOthers) {
  ASSERT_TRUE(open());
  server_.start();
  std::vector<int> slow;
  for (size_t i = 0; i < 3 * AdminServer::kConnectionsMax; ++i) {
    slow.push_back(connect());
    (void)::send(slow.back(), "GET", 3, MSG_NOSIGNAL);
  }
  EXPECT_THAT(ask(connect()), StartsWith("HTTP/1.1 200 OK"));
  for (const int descriptor : slow) ::close(descriptor);
}

TEST_F(AdminServerTest, AnAddressThatIsNotHereIsAnErrorUnlessOptional) {
  const auto refused = open("192.0.2.1");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("Failed listening on http-port"));
  EXPECT_TRUE(open("-192.0.2.1 127.0.0.1"));
}

TEST_F(AdminServerTest, SomeAddressMustBeThere) {
  const auto refused = open("-192.0.2.1");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no address of http-bind"));
}

}  // namespace
}  // namespace server::admin
