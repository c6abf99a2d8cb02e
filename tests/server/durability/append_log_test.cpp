// SPDX-License-Identifier: MIT
//
// Who writes and syncs the append log, and that nobody who waits for it is forgotten.
#include "server/durability/append_log.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

class AppendLogTest : public ::testing::Test {
 protected:
  void open(const char* policy) {
    const std::array<const char*, 3> options = {"server", "--appendfsync", policy};
    ASSERT_TRUE(config_.load(static_cast<int>(options.size()), options.data()));
    ASSERT_TRUE(writer_.open({}, std::nullopt, 0, persistence::AofWriter::Begin::kNow));
    journal_.set_active(true);
    disk_.restart_count();
  }
  // Returns where the stream ends behind it.
  uint64_t append(std::string_view name) {
    journal_.append(0, std::array<std::string_view, 3>{"SET", name, "value"});
    return persistence::Journal::end_of_last_append();
  }
  bool becomes_safe(uint64_t offset) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!log_.is_safe(offset)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  Config config_;
  core::SystemClock clock_;
  persistence::Journal journal_;
  VirtualDisk disk_;
  Availability availability_;
  persistence::AofWriter writer_{disk_, journal_, clock_, {"dir", persistence::AofNames("log")}};
  AppendLog log_{config_, clock_, journal_, writer_, availability_};
};

TEST_F(AppendLogTest, EverySecondTheCallerWrites) {
  open("everysec");
  const uint64_t end = append("key");
  EXPECT_FALSE(log_.is_safe(end));
  log_.commit(0);
  EXPECT_TRUE(log_.is_safe(end));
  EXPECT_EQ(disk_.operation_count(), 1U);
}

TEST_F(AppendLogTest, AlwaysTheCallerLeavesTheDiskAlone) {
  open("always");
  const uint64_t end = append("key");
  log_.commit(0);
  log_.commit(1);
  EXPECT_FALSE(log_.is_safe(end));
  EXPECT_EQ(disk_.operation_count(), 0U);
  log_.start();
  EXPECT_TRUE(becomes_safe(end));
}

// Clients in loops of their own, as many as threads: whoever counts on the others to wake the log's
// thread must be answered when they do not come.
TEST_F(AppendLogTest, AlwaysAnswersAllWhoWait) {
  constexpr int kClients = 4;
  constexpr int kWrites = 300;
  open("always");
  log_.start();
  std::vector<std::thread> clients;
  std::array<int, kClients> answered{};
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([this, client, &answered] {
      // Each writes less than the one before, so that the groups become smaller.
      for (int i = 0; i < kWrites / (client + 1); ++i) {
        const uint64_t end = append(std::to_string(client) + ":" + std::to_string(i));
        log_.commit(1);
        if (!becomes_safe(end)) return;
        ++answered[static_cast<size_t>(client)];
      }
    });
  }
  for (std::thread& client : clients) client.join();
  log_.stop();
  for (int client = 0; client < kClients; ++client) {
    EXPECT_EQ(answered[static_cast<size_t>(client)], kWrites / (client + 1));
  }
  disk_.cut_power(Unsynced::kLost);
  const auto content = disk_.content("dir/log.1.incr.aof");
  ASSERT_TRUE(content);
  EXPECT_NE(content->find("\r\n0:299\r\n"), std::string::npos);
  EXPECT_NE(content->find("\r\n3:74\r\n"), std::string::npos);
}

TEST_F(AppendLogTest, ALogThatWasClosedKeepsNobodyWaiting) {
  open("always");
  log_.start();
  const uint64_t end = append("key");
  ASSERT_TRUE(log_.flush());
  journal_.set_active(false);
  writer_.close();
  log_.commit(1);
  EXPECT_TRUE(log_.is_safe(end + 1));
}

}  // namespace
}  // namespace server
