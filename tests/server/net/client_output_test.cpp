// SPDX-License-Identifier: MIT
#include "server/net/client_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace server::net {
namespace {

// A stream that accepts `room` bytes and then blocks.
struct FakeStream final : Stream {
  Outcome receive(std::span<char>, std::span<char>, size_t) override { return {Status::kLater}; }
  Outcome send(std::string_view bytes) override {
    ++calls;
    if (is_broken) return {Status::kBroken};
    const size_t size = std::min(room, bytes.size());
    if (size == 0) return {Status::kLater};
    taken += bytes.substr(0, size);
    room -= size;
    return {Status::kDone, size};
  }
  void close() override {}

  size_t room = 1000;
  std::string taken;
  int calls = 0;
  bool is_broken = false;
};

class ClientOutputTest : public testing::Test {
 protected:
  FakeStream stream_;
  ThreadStatistics counters_{1};
  ClientOutput output_{stream_, counters_};
};

TEST_F(ClientOutputTest, DropsTheSentBytes) {
  EXPECT_TRUE(output_.send("reply"));
  EXPECT_EQ(stream_.taken, "reply");
  EXPECT_TRUE(output_.empty());
  EXPECT_FALSE(output_.wants_to_send());
  EXPECT_EQ(output_.peak(), 5u);
  EXPECT_EQ(counters_.output_bytes.value(), 5u);
  EXPECT_EQ(counters_.writes_processed.value(), 1u);
}

TEST_F(ClientOutputTest, TheRestIsKeptInOrder) {
  stream_.room = 3;
  EXPECT_TRUE(output_.send("reply"));
  EXPECT_TRUE(output_.send(" two"));
  output_.keep(" three");
  EXPECT_EQ(stream_.calls, 1) << "a full stream is not tried again";
  EXPECT_TRUE(output_.wants_to_send());
  stream_.room = 1000;
  EXPECT_TRUE(output_.flush(false));
  EXPECT_EQ(stream_.taken, "rep") << "the stream has not reported that it accepts more";
  EXPECT_TRUE(output_.flush(true));
  EXPECT_EQ(stream_.taken, "reply two three");
  EXPECT_EQ(output_.capacity(), 0u);
  EXPECT_EQ(output_.peak(), 12u);
  output_.restart_peak();
  EXPECT_EQ(output_.peak(), 0u);
}

TEST_F(ClientOutputTest, AWholeBufferIsTakenWithoutACopy) {
  stream_.room = 3;
  protocol::OutputBuffer whole;
  whole.append("reply");
  whole.append(std::string(1000, 'x'));
  EXPECT_TRUE(output_.send(whole.view(), &whole));
  EXPECT_EQ(whole.capacity(), 0u);
  EXPECT_EQ(output_.size(), 1002u);
  EXPECT_EQ(output_.peak(), 1005u);
  stream_.room = 5;
  EXPECT_TRUE(output_.flush(true));
  EXPECT_EQ(stream_.taken, "replyxxx");
  // While earlier bytes are unsent, send() leaves new bytes in the caller's buffer. The earlier
  // bytes must be sent first.
  protocol::OutputBuffer next;
  next.append("next");
  EXPECT_TRUE(output_.send(next.view(), &next));
  EXPECT_EQ(next.view(), "next");
  stream_.room = 10000;
  EXPECT_TRUE(output_.flush(true));
  EXPECT_EQ(stream_.taken, "reply" + std::string(1000, 'x') + "next");
}

TEST_F(ClientOutputTest, AHeldWholeBufferKeepsItsWrites) {
  protocol::OutputBuffer whole;
  whole.append("+OK\r\n" + std::string(100, 'x'));
  const std::vector<ReplySpan> writes{{0, 5}};
  output_.hold(whole.view(), writes, &whole);
  EXPECT_TRUE(whole.empty());
  EXPECT_EQ(output_.release("IOERR full", protocol::RespVersion::kResp2), 1u);
  EXPECT_TRUE(output_.flush(true));
  EXPECT_EQ(stream_.taken, "-IOERR full\r\n" + std::string(100, 'x'));
}

TEST_F(ClientOutputTest, TellsWhetherTheStreamHasTakenBytes) {
  stream_.room = 1;
  EXPECT_TRUE(output_.send("ab"));
  EXPECT_TRUE(output_.has_moved());
  EXPECT_TRUE(output_.flush(true));
  EXPECT_FALSE(output_.has_moved());
}

TEST_F(ClientOutputTest, ReportsABrokenStream) {
  stream_.is_broken = true;
  EXPECT_FALSE(output_.send("a"));
  EXPECT_FALSE(output_.flush(true));
}

TEST_F(ClientOutputTest, NothingLeavesWhileBytesAreHeld) {
  stream_.room = 1;
  EXPECT_TRUE(output_.send("ab"));
  const std::vector<ReplySpan> writes{{0, 1}};
  output_.hold("c", writes);
  output_.keep("message");
  stream_.room = 1000;
  EXPECT_TRUE(output_.is_held());
  EXPECT_FALSE(output_.wants_to_send());
  EXPECT_TRUE(output_.flush(true));
  EXPECT_EQ(stream_.taken, "a");
  EXPECT_EQ(output_.release({}, protocol::RespVersion::kResp2), 0u);
  EXPECT_TRUE(output_.flush(false));
  EXPECT_EQ(stream_.taken, "abcmessage");
}

TEST_F(ClientOutputTest, AnErrorStandsForTheRepliesToWrites) {
  stream_.room = 1;
  EXPECT_TRUE(output_.send("xy"));
  // The text passed to hold() has the replies to a read and four writes. The second write is
  // rejected, and the third write has an empty reply. `writes` has the start and end of the reply
  // to each write.
  const std::vector<ReplySpan> writes{{2, 7}, {7, 15}, {15, 15}, {15, 19}};
  output_.hold("+r+OK\r\n-ERR x\r\n:1\r\n", writes);
  EXPECT_EQ(output_.release("IOERR full", protocol::RespVersion::kResp2), 2u);
  stream_.room = 1000;
  EXPECT_TRUE(output_.flush(true));
  EXPECT_EQ(stream_.taken, "xy+r-IOERR full\r\n-ERR x\r\n-IOERR full\r\n");
}

TEST_F(ClientOutputTest, KnowsItsLimit) {
  stream_.room = 0;
  EXPECT_TRUE(output_.send("four"));
  EXPECT_FALSE(output_.is_over({.hard_bytes = 5}, 0));
  EXPECT_TRUE(output_.is_over({.hard_bytes = 4}, 0));
}

TEST_F(ClientOutputTest, SoftLimitCountsFromTheLastEmptyBuffer) {
  constexpr int64_t kSecondUs = 1'000'000;
  const BufferLimit limit{.hard_bytes = 0, .soft_bytes = 4, .soft_seconds = 2};
  for (int64_t second = 0; second < 10; ++second) {
    stream_.room = 0;
    EXPECT_TRUE(output_.send("four"));
    EXPECT_FALSE(output_.is_over(limit, second * kSecondUs));
    stream_.room = 1000;
    EXPECT_TRUE(output_.flush(true));
  }
  stream_.room = 0;
  EXPECT_TRUE(output_.send("four"));
  EXPECT_FALSE(output_.is_over(limit, 10 * kSecondUs));
  EXPECT_TRUE(output_.is_over(limit, 13 * kSecondUs));
}

}  // namespace
}  // namespace server::net
