// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/transport/stream.h"
#include "server/base/transport/tls.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/wait_limit.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kPatienceMs = 60'000;

class ReplicaSocketTest : public ::testing::Test {
 protected:
  ~ReplicaSocketTest() override {
    if (leader_ >= 0) ::close(leader_);
  }
  void connect() {
    const auto connected = socket_.connect({"127.0.0.1", listener_.port()}, kPatienceMs);
    ASSERT_TRUE(connected) << connected.error().message;
    leader_ = listener_.accept();
    support::limit_waits(leader_);
  }
  void say(const std::string& bytes) const {
    EXPECT_EQ(::send(leader_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Receives once. Returns the bytes, or the text of the error.
  std::string received(int64_t timeout_ms = kPatienceMs) {
    std::vector<char> room(4096 + Stream::kExtraBytesMax);
    const auto count = socket_.receive(room, timeout_ms);
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

  LoopbackListener listener_;
  Waker waker_;
  ReplicaSocket socket_{waker_};
  int leader_ = -1;
};

TEST_F(ReplicaSocketTest, BytesGoBothWays) {
  connect();
  ASSERT_TRUE(socket_.send("PING\r\n"));
  EXPECT_EQ(heard(6), "PING\r\n");
  say("+PONG\r\n");
  EXPECT_EQ(received(), "+PONG\r\n");
}

TEST_F(ReplicaSocketTest, NamesAreResolved) {
  ASSERT_TRUE(socket_.connect({"localhost", listener_.port()}, kPatienceMs));
}

TEST_F(ReplicaSocketTest, TheLinkBeginsAtTheSourceAddress) {
  const auto source_of = [this](const std::string& source) {
    ReplicaSocket socket(waker_);
    const auto connected =
        socket.connect({"127.0.0.1", listener_.port(), nullptr, source}, kPatienceMs);
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

TEST_F(ReplicaSocketTest, ReportsAMissingServer) {
  const auto connected = socket_.connect({"127.0.0.1", 1}, kPatienceMs);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, "connect: Connection refused");
}

TEST_F(ReplicaSocketTest, UnresolvableNameIsInTheError) {
  const auto connected = socket_.connect({"no such host", 1}, kPatienceMs);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, StartsWith("'no such host': "));
}

TEST_F(ReplicaSocketTest, WithoutSettingsThereIsNoEncryption) {
  Config config;
  const Tls tls(config);
  const auto connected = socket_.connect({"127.0.0.1", listener_.port(), &tls}, kPatienceMs);
  ASSERT_FALSE(connected);
  EXPECT_THAT(connected.error().message, HasSubstr("tls-replication"));
}

TEST_F(ReplicaSocketTest, NothingComesWhenTheTimeIsOver) {
  connect();
  EXPECT_EQ(received(1), "");
}

TEST_F(ReplicaSocketTest, TheWakerEndsAWait) {
  connect();
  std::jthread waking([this] { waker_.wake(); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(received(60'000), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ReplicaSocketTest, AWakeBeforeTheWaitCounts) {
  waker_.wake();
  const auto begin = std::chrono::steady_clock::now();
  waker_.wait(60'000);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ReplicaSocketTest, AWakeIsUsedUpByAWait) {
  waker_.wake();
  waker_.wake();
  waker_.wait(60'000);
  const auto begin = std::chrono::steady_clock::now();
  waker_.wait(50);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(40));
}

TEST_F(ReplicaSocketTest, BytesThatAreThereComeDespiteTheWaker) {
  connect();
  say("bytes");
  waker_.wake();
  EXPECT_EQ(received(), "bytes");
}

TEST_F(ReplicaSocketTest, TheEndIsAnErrorBehindTheLastBytes) {
  connect();
  say("last");
  ::shutdown(leader_, SHUT_WR);
  EXPECT_EQ(received(), "last");
  EXPECT_EQ(received(), "error: the leader closed the connection");
}

TEST_F(ReplicaSocketTest, UnsentBytesKeepTheirOrder) {
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

TEST_F(ReplicaSocketTest, ALeaderThatTakesNothingIsLeft) {
  connect();
  const std::string piece(size_t{256} << 10, 'x');
  core::Result<> sent;
  for (int i = 0; i < 1000 && sent; ++i) sent = socket_.send(piece);
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().message, HasSubstr("leader"));
}

}  // namespace
}  // namespace server
