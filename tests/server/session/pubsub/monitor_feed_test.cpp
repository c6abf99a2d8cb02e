// SPDX-License-Identifier: MIT
#include "server/session/pubsub/monitor_feed.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace server {
namespace {

class MonitorFeedTest : public ::testing::Test {
 protected:
  std::vector<size_t> woken_;
  MonitorFeed feed_{2, [this](size_t thread_index) { woken_.push_back(thread_index); }};
};

TEST_F(MonitorFeedTest, LinesGoToThreadsWithMonitors) {
  feed_.feed("nobody\r\n");
  EXPECT_TRUE(woken_.empty());
  feed_.add(7, 1);
  EXPECT_EQ(feed_.count(), 1U);
  feed_.feed("one\r\n");
  feed_.feed("two\r\n");
  EXPECT_EQ(woken_, std::vector<size_t>{1}) << "one wake for the pending lines";
  EXPECT_TRUE(feed_.take(0).receivers.empty());
  const auto batch = feed_.take(1);
  EXPECT_EQ(batch.lines, "one\r\ntwo\r\n");
  ASSERT_EQ(batch.receivers.size(), 1U);
  EXPECT_EQ(batch.receivers[0].session_id, 7U);
  EXPECT_EQ(batch.receivers[0].first_byte, 0U);
  feed_.feed("three\r\n");
  EXPECT_EQ(woken_.size(), 2U);
}

TEST_F(MonitorFeedTest, AMonitorSeesNothingOfBeforeItBegan) {
  feed_.add(1, 0);
  feed_.feed("old\r\n");
  feed_.add(2, 0);
  feed_.feed("new\r\n");
  const auto batch = feed_.take(0);
  ASSERT_EQ(batch.receivers.size(), 2U);
  EXPECT_EQ(batch.lines.substr(batch.receivers[0].first_byte), "old\r\nnew\r\n");
  EXPECT_EQ(batch.lines.substr(batch.receivers[1].first_byte), "new\r\n");
  feed_.feed("next\r\n");
  for (const auto& receiver : feed_.take(0).receivers) EXPECT_EQ(receiver.first_byte, 0U);
}

TEST_F(MonitorFeedTest, AFullInboxIsBoundedAndCondemnsItsMonitors) {
  feed_.add(1, 0);
  const std::string line(size_t{1} << 20, 'x');
  for (int i = 0; i < 100; ++i) feed_.feed(line);
  const auto batch = feed_.take(0);
  EXPECT_TRUE(batch.has_overflowed);
  EXPECT_LE(batch.lines.size(), MonitorFeed::kInboxBytesMax);
  EXPECT_EQ(batch.receivers.size(), 1U);
  EXPECT_FALSE(feed_.take(0).has_overflowed);
}

TEST_F(MonitorFeedTest, RemovedMonitorsGetNothing) {
  feed_.add(1, 0);
  feed_.add(2, 1);
  feed_.remove(1);
  feed_.remove(1);
  EXPECT_EQ(feed_.count(), 1U);
  feed_.feed("x\r\n");
  EXPECT_EQ(woken_, std::vector<size_t>{1});
}

TEST_F(MonitorFeedTest, AllThreadsSeeTheSameOrder) {
  feed_.add(1, 0);
  feed_.add(2, 1);
  MonitorFeed quiet(2, [](size_t) {});
  quiet.add(1, 0);
  quiet.add(2, 1);
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&quiet, w] {
      for (int i = 0; i < 1000; ++i) quiet.feed(std::to_string(w) + ":" + std::to_string(i) + "\n");
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(quiet.take(0).lines, quiet.take(1).lines);
}

TEST(MonitorLineTest, LooksAsInRedis) {
  EXPECT_EQ(monitor_line(1'700'000'000'000'042, 3, "127.0.0.1:5", {"SET", "a b", "1"}),
            "+1700000000.000042 [3 127.0.0.1:5] \"SET\" \"a b\" \"1\"\r\n");
}

TEST(MonitorLineTest, NoByteOfAWordEndsTheLine) {
  const std::string bytes("\"\\\n\r\t\a\b\0\x7f\xff~ ", 12);
  EXPECT_EQ(monitor_line(0, 0, "unix:/s", {bytes}),
            "+0.000000 [0 unix:/s] \"\\\"\\\\\\n\\r\\t\\a\\b\\x00\\x7f\\xff~ \"\r\n");
}

}  // namespace
}  // namespace server
