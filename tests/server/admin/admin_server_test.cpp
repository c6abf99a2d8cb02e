// SPDX-License-Identifier: MIT
#include "server/admin/admin_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/transport/tls.h"
#include "tests/support/command_test.h"
#include "tests/support/reserved_port.h"
#include "tests/support/tls_authority.h"
#include "tests/support/tls_caller.h"
#include "tests/support/wait_limit.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
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
  core::Result<> open(const std::string& bind = "127.0.0.1") {
    config_.replace(OptionId::kHttpPort, std::to_string(port_));
    config_.replace(OptionId::kHttpBind, bind);
    return server_.open();
  }
  int connect() const {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    support::limit_waits(descriptor);
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
    ssize_t size = 0;
    while ((size = ::recv(descriptor, room.data(), room.size(), 0)) > 0) {
      bytes.append(room.data(), static_cast<size_t>(size));
    }
    EXPECT_FALSE(size < 0 && errno == EAGAIN) << "the answer does not end: " << bytes;
    ::close(descriptor);
    return bytes;
  }
  // Returns whether the server closes the connection without a response.
  static bool is_let_go(int descriptor) {
    char byte = 0;
    const ssize_t size = ::recv(descriptor, &byte, 1, 0);
    return size == 0 || (size < 0 && errno != EAGAIN);
  }

  const ReservedPort reserved_;
  const uint16_t port_ = reserved_.port();
  Tls tls_{config_};
  AdminServer server_{services_, tls_, [](std::function<void()> answer) { answer(); },
                      [](const WriteCaller::Task&) {}};
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
  EXPECT_TRUE(is_let_go(idle));
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

TEST_F(AdminServerTest, AStormOfConnectionsTakesBoundedRoom) {
  ASSERT_TRUE(open());
  server_.start();
  constexpr size_t kCallers = 400;
  std::vector<int> callers;
  for (size_t i = 0; i < kCallers; ++i) {
    callers.push_back(connect());
    if (i % 2 == 0)
      (void)::send(callers.back(), "GET /metrics HTTP/1.1\r\nHost: a", 31, MSG_NOSIGNAL);
  }
  // When the server answers this last client, it has accepted all earlier clients.
  EXPECT_THAT(ask(connect()), StartsWith("HTTP/1.1 200 OK"));
  size_t left = 0;
  for (const int descriptor : callers) {
    char byte = 0;
    const ssize_t size = ::recv(descriptor, &byte, 1, MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) ++left;
    ::close(descriptor);
  }
  EXPECT_LE(left, AdminServer::kConnectionsMax);
  EXPECT_THAT(ask(connect()), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(AdminServerTest, AStopWaitsForNoHalfRequest) {
  ASSERT_TRUE(open());
  server_.start();
  const int half = connect();
  (void)::send(half, "GET / HT", 8, MSG_NOSIGNAL);
  EXPECT_THAT(ask(connect()), StartsWith("HTTP/1.1 200 OK"));
  server_.stop();
  EXPECT_TRUE(is_let_go(half));
  ::close(half);
}

TEST_F(AdminServerTest, WithoutPortNoSocketIsOpened) {
  const auto sockets = [] {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const auto target = std::filesystem::read_symlink(entry.path(), gone);
      if (target.string().starts_with("socket:")) ++count;
    }
    return count;
  };
  const size_t before = sockets();
  EXPECT_TRUE(server_.open());
  server_.start();
  EXPECT_EQ(sockets(), before);
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

class AdminTlsTest : public AdminServerTest {
 protected:
  void SetUp() override {
    const auto identity = authority_.issue("server");
    const auto set =
        config_.set(std::vector<NamedValue>{{"tls-auth-clients", "no"},
                                            {"tls-ca-cert-file", authority_.certificate_file()},
                                            {"tls-cert-file", identity.certificate_file},
                                            {"tls-key-file", identity.key_file}});
    ASSERT_TRUE(set) << set.error().message;
    config_.replace(OptionId::kHttpTls, "yes");
    ASSERT_TRUE(open());
    ASSERT_TRUE(tls_.apply());
    server_.start();
  }
  void expect_an_answer() {
    net::TlsCaller caller(authority_);
    ASSERT_TRUE(caller.call(port_));
    ASSERT_TRUE(caller.send("GET /healthz HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(caller.hear(), StartsWith("HTTP/1.1 200 OK"));
  }

  TlsAuthority authority_;
};

TEST_F(AdminTlsTest, AnswersUnderTheServersCertificate) {
  expect_an_answer();
}

TEST_F(AdminTlsTest, PlainRequestsGetNoAnswer) {
  EXPECT_THAT(ask(connect()), Not(HasSubstr("200 OK")));
}

TEST_F(AdminTlsTest, HalfHandshakesDoNotBlockOthers) {
  const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  std::vector<int> held;
  for (size_t i = 0; i < 200; ++i) {
    held.push_back(connect());
    (void)::send(held.back(), hello.data(), i % 12, MSG_NOSIGNAL);
  }
  expect_an_answer();
  for (const int descriptor : held) ::close(descriptor);
}

}  // namespace
}  // namespace server::admin
