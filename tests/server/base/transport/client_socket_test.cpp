// SPDX-License-Identifier: MIT
#include "server/base/transport/client_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/base/process/waker.h"
#include "server/base/transport/stream.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/wait_limit.h"

namespace server {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kPatience{60'000};

class ClientSocketTest : public ::testing::Test {
 protected:
  ~ClientSocketTest() override {
    if (leader_ >= 0) ::close(leader_);
  }
  void connect() {
    const auto connected = socket_.connect({"127.0.0.1", listener_.port()}, kPatience);
    ASSERT_TRUE(connected) << connected.error().message;
    leader_ = listener_.accept();
    support::limit_waits(leader_);
  }
  void say(const std::string& bytes) const {
    EXPECT_EQ(::send(leader_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Receives once. Returns the bytes, or the text of the error.
  std::string received(std::chrono::milliseconds timeout = kPatience) {
    std::vector<char> room(4096 + Stream::kExtraBytesMax);
    const auto count = socket_.receive(room, timeout);
    return count ? std::string(room.data(), *count) : "error: " + count.error().message;
  }
  // Returns the next `size` bytes that the leader receives, or fewer if the connection ends.
  std::string heard(size_t size) const {
    std::string all;
    std::array<char, 65536> room;
    while (all.size() < size) {
      const ssize_t got = ::recv(leader_, room.data(), room.size(), 0);
      if (got < 0 && errno == EAGAIN) ADD_FAILURE() << "silence after " << all.size() << " bytes";
      if (got <= 0) break;
      all.append(room.data(), static_cast<size_t>(got));
    }
    return all;
  }

  ClientSocket::Target tls_target() const {
    ClientSocket::Target target{.host = "127.0.0.1", .port = listener_.port()};
    target.uses_tls = true;
    target.tls.reset(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    return target;
  }

  LoopbackListener listener_;
  Waker waker_;
  ClientSocket socket_{&waker_};
  int leader_ = -1;
};

TEST_F(ClientSocketTest, BytesGoBothWays) {
  connect();
  ASSERT_TRUE(socket_.send("PING\r\n"));
  EXPECT_EQ(heard(6), "PING\r\n");
  say("+PONG\r\n");
  EXPECT_EQ(received(), "+PONG\r\n");
}

TEST_F(ClientSocketTest, NamesAreResolved) {
  ASSERT_TRUE(socket_.connect({"localhost", listener_.port()}, kPatience));
}

TEST_F(ClientSocketTest, TheLinkBeginsAtTheSourceAddress) {
  const auto source_of = [this](const std::string& source) {
    ClientSocket socket(&waker_);
    const auto connected = socket.connect(
        {.host = "127.0.0.1", .port = listener_.port(), .source_address = source}, kPatience);
    EXPECT_TRUE(connected);
    const int accepted = listener_.accept();
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getpeername(accepted, reinterpret_cast<sockaddr*>(&address), &size), 0);
    ::close(accepted);
    return ntohl(address.sin_addr.s_addr);
  };
  EXPECT_EQ(source_of("127.0.0.9"), 0x7f000009U);
  // As in Redis, a source address that this machine does not have is ignored.
  EXPECT_EQ(source_of("192.0.2.1"), 0x7f000001U);
  EXPECT_EQ(source_of(""), 0x7f000001U);
}

TEST_F(ClientSocketTest, ReportsAMissingServer) {
  const auto connected = socket_.connect({"127.0.0.1", 1}, kPatience);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, "Connection refused");
}

TEST_F(ClientSocketTest, UnresolvableNameIsAnError) {
  EXPECT_FALSE(socket_.connect({"no such host", 1}, kPatience));
}

TEST_F(ClientSocketTest, TlsWithoutContextIsAnError) {
  const auto connected =
      socket_.connect({.host = "127.0.0.1", .port = listener_.port(), .uses_tls = true}, kPatience);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("TLS"));
}

TEST_F(ClientSocketTest, SilentPeerEndsTheTlsHandshake) {
  const auto connected = socket_.connect(tls_target(), std::chrono::milliseconds(50));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, "TLS handshake: no answer in time");
}

TEST_F(ClientSocketTest, DeadlineAlsoEndsTheTlsHandshake) {
  const auto deadline = WaitLimit::Clock::now() + std::chrono::milliseconds(50);
  EXPECT_FALSE(socket_.connect(tls_target(), {std::chrono::hours(1), deadline}));
}

TEST_F(ClientSocketTest, PlainPeerFailsTheTlsHandshake) {
  std::jthread peer([this] {
    leader_ = listener_.accept();
    say("+PONG\r\n");
  });
  const auto connected = socket_.connect(tls_target(), kPatience);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("TLS handshake: error:"));
}

TEST_F(ClientSocketTest, LocalConnectionBeginsAtTheTargetsAddress) {
  ClientSocket::Target target{.host = "127.0.0.1", .port = listener_.port()};
  target.is_local = true;
  EXPECT_TRUE(socket_.connect(target, kPatience));
  target.host = "192.0.2.1";
  const auto connected = socket_.connect(target, kPatience);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, "Cannot assign requested address");
}

TEST_F(ClientSocketTest, TooLongPathIsAnError) {
  const auto connected = socket_.connect({.path = std::string(200, 'x')}, kPatience);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("too long"));
}

TEST_F(ClientSocketTest, NothingComesWhenTheTimeIsOver) {
  connect();
  EXPECT_EQ(received(std::chrono::milliseconds(1)), "");
}

TEST_F(ClientSocketTest, TheWakerEndsAWait) {
  connect();
  std::jthread waking([this] { waker_.wake(); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(received(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ClientSocketTest, BytesThatAreThereComeDespiteTheWaker) {
  connect();
  say("bytes");
  waker_.wake();
  EXPECT_EQ(received(), "bytes");
}

TEST_F(ClientSocketTest, TheEndIsAnErrorBehindTheLastBytes) {
  connect();
  say("last");
  ::shutdown(leader_, SHUT_WR);
  EXPECT_EQ(received(), "last");
  EXPECT_EQ(received(), "error: the connection was closed");
}

TEST_F(ClientSocketTest, UnsentBytesKeepTheirOrder) {
  const int little = 4096;
  ::setsockopt(listener_.descriptor(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  connect();
  std::string all;
  for (char letter = 'a'; letter < 'k'; ++letter) {
    const std::string piece(100'000, letter);
    ASSERT_TRUE(socket_.send(piece));
    all += piece;
  }
  std::atomic<bool> is_read = false;
  std::string got;
  std::jthread reading([&] {
    got = heard(all.size());
    is_read = true;
  });
  // send() also sends the buffered bytes, even if there are no new bytes.
  while (!is_read && socket_.send("")) std::this_thread::yield();
  reading.join();
  EXPECT_TRUE(got == all);
}

TEST_F(ClientSocketTest, PeerThatReadsNothingIsLeft) {
  connect();
  const std::string piece(size_t{256} << 10, 'x');
  core::Result<> sent;
  for (int i = 0; i < 1000 && sent; ++i) sent = socket_.send(piece);
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().message, HasSubstr("takes nothing"));
}

TEST_F(ClientSocketTest, SendingAllEndsAtATimeoutOrAWake) {
  connect();
  const std::string much(size_t{64} << 20, 'x');
  EXPECT_FALSE(socket_.send_all(much, std::chrono::milliseconds(20)));
  waker_.wake();
  EXPECT_FALSE(socket_.send_all(much, kPatience));
}

}  // namespace
}  // namespace server
