// SPDX-License-Identifier: MIT
#include "server/base/transport/resp_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "server/base/process/waker.h"
#include "tests/support/loopback_listener.h"

namespace server {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kAnswerLimit{60};

class RespClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto connected = client_.connect({.host = "127.0.0.1", .port = listener_.port()});
    ASSERT_TRUE(connected) << connected.error().message;
    peer_ = listener_.accept();
  }
  ~RespClientTest() override { hang_up(); }

  void say(const std::string& bytes) const {
    EXPECT_EQ(::send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void hang_up() {
    if (peer_ >= 0) ::close(peer_);
    peer_ = -1;
  }
  std::string heard() const {
    char room[1024];
    const ssize_t size = ::recv(peer_, room, sizeof room, 0);
    return {room, static_cast<size_t>(size > 0 ? size : 0)};
  }
  // Each function returns the text that was read, or the text of the error.
  std::string line() {
    const auto read = client_.read_line();
    return read ? *read : "error: " + read.error().message;
  }
  std::string reply() {
    const auto read = client_.read_reply();
    return read ? read->text : "error: " + read.error().message;
  }

  LoopbackListener listener_;
  Waker waker_;
  RespClient client_{kAnswerLimit, &waker_};
  int peer_ = -1;
};

TEST_F(RespClientTest, SendsCommandsAndReadsReplies) {
  ASSERT_TRUE(client_.send_command({"GET", "a"}));
  EXPECT_EQ(heard(), "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  say("$4\r\na\r\nb\r\n+O");
  EXPECT_EQ(reply(), "a\r\nb");
  say("K\r\n-ERR no\r\n");
  EXPECT_EQ(reply(), "OK");
  EXPECT_EQ(reply(), "ERR no");
}

TEST_F(RespClientTest, LinesEndWithOrWithoutReturn) {
  say("+OK 1\r\n\nsecond\n+last\r\nrest");
  EXPECT_EQ(line(), "+OK 1");
  EXPECT_EQ(line(), "");
  EXPECT_EQ(line(), "second");
  EXPECT_EQ(reply(), "last");
  const auto rest = client_.read_some();
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, "rest");
}

TEST_F(RespClientTest, LongestLineIsRead) {
  const std::string longest(kReplyLineBytesMax, 'x');
  say(longest + "\n");
  EXPECT_TRUE(line() == longest);
}

TEST_F(RespClientTest, TooLongLineIsAnError) {
  say(std::string(kReplyLineBytesMax + 1, 'x'));
  EXPECT_EQ(line(), "error: a line of the reply is too long");
}

TEST_F(RespClientTest, TooLongLineWithItsEndIsAnError) {
  say(std::string(kReplyLineBytesMax + 1, 'x') + "\r\n");
  EXPECT_EQ(line(), "error: a line of the reply is too long");
}

TEST_F(RespClientTest, TooLargeReplyIsAnError) {
  std::jthread peer([this] {
    say("$10000000\r\n");
    const std::string piece(size_t{1} << 20, 'x');
    while (::send(peer_, piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  EXPECT_EQ(reply(), "error: the reply is too large");
  client_ = RespClient(kAnswerLimit);  // closes the connection, which ends the thread
}

TEST_F(RespClientTest, WrongTypeByteIsAnError) {
  say("?3\r\nabc\r\n");
  EXPECT_THAT(reply(), HasSubstr("error: "));
}

TEST_F(RespClientTest, WrongSizeIsAnError) {
  say("$x\r\n");
  EXPECT_THAT(reply(), HasSubstr("error: "));
}

TEST_F(RespClientTest, PeerThatClosesIsAnError) {
  say("$3\r\nab");
  hang_up();
  EXPECT_EQ(reply(), "error: the connection was closed");
}

TEST_F(RespClientTest, PeerThatClosesInALineIsAnError) {
  say("no end");
  hang_up();
  EXPECT_EQ(line(), "error: the connection was closed");
}

TEST_F(RespClientTest, PeerThatStallsIsAnError) {
  client_ = RespClient(milliseconds(20));
  ASSERT_TRUE(client_.connect({.host = "127.0.0.1", .port = listener_.port()}));
  EXPECT_EQ(reply(), "error: no answer in time");
  EXPECT_EQ(line(), "error: no answer in time");
  EXPECT_FALSE(client_.read_some());
}

TEST_F(RespClientTest, DeadlineEndsAWait) {
  client_.end_at(RespClient::Clock::now() + milliseconds(20));
  say("no end of the line");
  EXPECT_EQ(line(), "error: no answer in time");
  say("\n");
  client_.end_at(RespClient::Clock::now() + kAnswerLimit);
  EXPECT_EQ(line(), "no end of the line");
}

TEST_F(RespClientTest, WakeEndsAWait) {
  std::jthread waking([this] { waker_.wake(); });
  EXPECT_EQ(line(), "error: no answer in time");
}

TEST_F(RespClientTest, AuthenticatesByNameAndPassword) {
  EXPECT_TRUE(client_.authenticate("user", "")) << "nothing is sent without a password";
  say("+OK\r\n-WRONGPASS no\r\n");
  EXPECT_TRUE(client_.authenticate("user", "a"));
  EXPECT_EQ(heard(), "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$1\r\na\r\n");
  const auto known = client_.authenticate("", "b");
  EXPECT_EQ(heard(), "*2\r\n$4\r\nAUTH\r\n$1\r\nb\r\n");
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().message, "WRONGPASS no");
}

}  // namespace
}  // namespace server
