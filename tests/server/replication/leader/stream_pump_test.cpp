// SPDX-License-Identifier: MIT
#include "server/replication/leader/stream_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace server {
namespace {

constexpr int kLongMs = 20'000;

class StreamPumpTest : public ::testing::Test {
 protected:
  StreamPumpTest() {
    ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data());
    for (const int end : ends_) ::fcntl(end, F_SETFL, O_NONBLOCK);
    auto client = std::make_shared<Client>(1);
    client->socket.descriptor = ends_[0];
    link_ = std::make_shared<ReplicaSender>(client);
    backlog_.begin(0);
    link_->cursor = backlog_.attach(0);
  }
  ~StreamPumpTest() override {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  std::string received() const {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(ends_[1], buffer.data(), buffer.size());
    return {buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
  }
  static bool never() { return false; }

  core::SystemClock clock_;
  Backlog backlog_;
  StreamPump pump_{backlog_, clock_};
  std::array<int, 2> ends_{};
  std::shared_ptr<ReplicaSender> link_;
};

TEST_F(StreamPumpTest, SendsTheStreamToThoseThatHaveIt) {
  backlog_.append("bytes");
  link_->say("+OK");
  EXPECT_EQ(pump_.pump({{link_, false}}).sent_bytes, 3U);
  EXPECT_EQ(received(), "+OK");
  EXPECT_EQ(pump_.pump({{link_, true}}).sent_bytes, 5U);
  EXPECT_EQ(received(), "bytes");
  EXPECT_EQ(link_->offset, 5U);
}

TEST_F(StreamPumpTest, TellsOfALinkThatIsGone) {
  ::close(std::exchange(ends_[1], -1));
  backlog_.append("bytes");
  const auto outcome = pump_.pump({{link_, true}});
  ASSERT_EQ(outcome.gone.size(), 1U);
  EXPECT_EQ(outcome.gone[0], link_);
}

TEST_F(StreamPumpTest, DoesNotSleepWhileThereIsSomethingToDo) {
  const auto begin_us = clock_.monotonic_us();
  backlog_.append("bytes");
  pump_.sleep({{link_, true}}, kLongMs, never);
  pump_.sleep({}, kLongMs, [] { return true; });
  pump_.interrupt();
  pump_.sleep({}, kLongMs, never);
  EXPECT_LT(clock_.monotonic_us() - begin_us, kLongMs * 1000);
}

TEST_F(StreamPumpTest, ASocketThatTakesMoreEndsASleep) {
  backlog_.append(std::string(size_t{4} << 20, 'x'));
  while (link_->offset == 0 || pump_.pump({{link_, true}}).sent_bytes > 0) {
    (void)pump_.pump({{link_, true}});
  }
  while (!received().empty()) {
  }
  const auto begin_us = clock_.monotonic_us();
  pump_.sleep({{link_, true}}, kLongMs, never);
  EXPECT_LT(clock_.monotonic_us() - begin_us, kLongMs * 1000);
}

}  // namespace
}  // namespace server
