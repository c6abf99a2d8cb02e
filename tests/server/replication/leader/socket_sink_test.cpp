// SPDX-License-Identifier: MIT
#include "server/replication/leader/socket_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

namespace server {
namespace {

// Two ends of a connection; closed when it goes.
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
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
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
    SocketSink sink({stuck.ends[0], good.ends[0]}, 1, clock_);
    EXPECT_TRUE(sink.write(big_));
    EXPECT_EQ(sink.count(), 1);
    ::shutdown(good.ends[0], SHUT_WR);
  }
  EXPECT_TRUE(got == big_);
  // The other holders of the socket learn of it.
  const std::string rest = stuck.read_to_end();
  EXPECT_LT(rest.size(), big_.size());
}

// They get nothing meanwhile, and may be as patient as the sink.
TEST_F(SocketSinkTest, ShutsOutWhoKeepsOthersWaitingBeforeTheyGiveUp) {
  ConnectedPair stuck;
  ConnectedPair good;
  constexpr int64_t kTimeoutS = 4;
  int64_t silent_ms = 0;
  {
    const std::jthread reader([&] {
      std::array<char, 65536> buffer;
      int64_t last_us = clock_.monotonic_us();
      while (::read(good.ends[1], buffer.data(), buffer.size()) > 0) {
        const int64_t now_us = clock_.monotonic_us();
        silent_ms = std::max(silent_ms, (now_us - last_us) / 1000);
        last_us = now_us;
      }
    });
    SocketSink sink({stuck.ends[0], good.ends[0]}, kTimeoutS, clock_);
    EXPECT_TRUE(sink.write(big_));
    EXPECT_TRUE(sink.write(big_));
    ::shutdown(good.ends[0], SHUT_WR);
  }
  EXPECT_GE(silent_ms, kTimeoutS * 1000 / 2 - 100);
  EXPECT_LT(silent_ms, kTimeoutS * 1000 * 3 / 4 + 500);
}

TEST_F(SocketSinkTest, FailsWhenNobodyIsLeft) {
  ConnectedPair gone;
  ::shutdown(gone.ends[1], SHUT_RD);
  SocketSink sink({gone.ends[0]}, 10, clock_);
  EXPECT_FALSE(sink.write(big_));
  EXPECT_FALSE(SocketSink({}, 10, clock_).write("x"));
}

}  // namespace
}  // namespace server
