// SPDX-License-Identifier: MIT
#include "server/replication/leader/socket_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>

#include "tests/support/waiting.h"

namespace server {
namespace {

// A connected pair of sockets, which the destructor closes.
struct ConnectedPair {
  ConnectedPair() {
    ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~ConnectedPair() {
    for (const int end : ends) ::close(end);
  }
  ConnectedPair(const ConnectedPair&) = delete;
  ConnectedPair& operator=(const ConnectedPair&) = delete;

  std::string read_to_end() const {
    std::string all;
    std::array<char, 4096> buffer;
    ssize_t size = 0;
    while ((size = ::read(ends[1], buffer.data(), buffer.size())) > 0) {
      all.append(buffer.data(), static_cast<size_t>(size));
    }
    return all;
  }

  std::array<int, 2> ends{};
};

class SocketSinkTest : public ::testing::Test {
 protected:
  core::SystemClock clock_;
  const std::string big_ = std::string(3 << 20, 'x') + "end";
};

TEST_F(SocketSinkTest, GivesEveryReceiverAllBytes) {
  ConnectedPair first;
  ConnectedPair second;
  std::string got_first;
  std::string got_second;
  {
    const std::jthread reader([&] { got_first = first.read_to_end(); });
    const std::jthread slow([&] {
      support::let_time_pass(std::chrono::milliseconds(50), "the other one has read all by then");
      got_second = second.read_to_end();
    });
    SocketSink sink({first.ends[0], second.ends[0]}, 10, clock_);
    EXPECT_TRUE(sink.write("begin"));
    EXPECT_TRUE(sink.write(big_));
    EXPECT_EQ(sink.count(), 2);
    ::shutdown(first.ends[0], SHUT_WR);
    ::shutdown(second.ends[0], SHUT_WR);
  }
  EXPECT_TRUE(got_first == "begin" + big_);
  EXPECT_TRUE(got_second == got_first);
}

TEST_F(SocketSinkTest, GoesOnWithoutThoseWhoAreGone) {
  ConnectedPair gone;
  ConnectedPair good;
  ::shutdown(gone.ends[1], SHUT_RD);
  std::string got;
  {
    const std::jthread reader([&] { got = good.read_to_end(); });
    SocketSink sink({gone.ends[0], good.ends[0]}, 10, clock_);
    EXPECT_TRUE(sink.write(big_));
    EXPECT_EQ(sink.count(), 1);
    ::shutdown(good.ends[0], SHUT_WR);
  }
  EXPECT_TRUE(got == big_);
}

TEST_F(SocketSinkTest, ShutsOutWhoTakesNothing) {
  ConnectedPair stuck;
  ConnectedPair good;
  std::string got;
  {
    const std::jthread reader([&] { got = good.read_to_end(); });
    SocketSink sink({stuck.ends[0], good.ends[0]}, 6, clock_);
    EXPECT_TRUE(sink.write(big_));
    EXPECT_EQ(sink.count(), 1);
    ::shutdown(good.ends[0], SHUT_WR);
  }
  EXPECT_TRUE(got == big_);
  // The sink has shut down the connection of the replica that reads nothing. So this replica
  // receives only a part of the bytes.
  const std::string rest = stuck.read_to_end();
  EXPECT_LT(rest.size(), big_.size());
}

// While the sink waits for the stuck replica, the other replicas receive nothing and may time out.
// Their timeout may equal the sink's timeout, so the sink must drop the stuck replica after half of
// this time. The test measures the time until the second piece arrives.
TEST_F(SocketSinkTest, ShutsOutWhoKeepsOthersWaitingBeforeTheyGiveUp) {
  ConnectedPair stuck;
  ConnectedPair good;
  constexpr int64_t kTimeoutS = 8;
  int64_t second_begun_us = 0;
  const int64_t begun_us = clock_.monotonic_us();
  {
    const std::jthread reader([&] {
      std::array<char, 65536> buffer;
      size_t received = 0;
      ssize_t size = 0;
      while ((size = ::read(good.ends[1], buffer.data(), buffer.size())) > 0) {
        received += static_cast<size_t>(size);
        if (second_begun_us == 0 && received > big_.size()) {
          second_begun_us = clock_.monotonic_us();
        }
      }
    });
    SocketSink sink({stuck.ends[0], good.ends[0]}, kTimeoutS, clock_);
    EXPECT_TRUE(sink.write(big_));
    EXPECT_EQ(sink.count(), 1);
    EXPECT_TRUE(sink.write(big_));
    ::shutdown(good.ends[0], SHUT_WR);
  }
  const int64_t waited_ms = (second_begun_us - begun_us) / 1000;
  EXPECT_GE(waited_ms, kTimeoutS * 1000 / 2);
  EXPECT_LT(waited_ms, kTimeoutS * 1000);
}

TEST_F(SocketSinkTest, FailsWithoutReceivers) {
  ConnectedPair gone;
  ::shutdown(gone.ends[1], SHUT_RD);
  SocketSink sink({gone.ends[0]}, 10, clock_);
  EXPECT_FALSE(sink.write(big_));
  EXPECT_FALSE(SocketSink({}, 10, clock_).write("x"));
}

}  // namespace
}  // namespace server
