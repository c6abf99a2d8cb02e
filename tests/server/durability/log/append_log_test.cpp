// SPDX-License-Identifier: MIT
//
// Tests which thread writes and syncs the append log, and that every client that waits for the log
// gets its reply.
#include "server/durability/log/append_log.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "persistence/aof/aof_writer.h"
#include "server/base/config/config.h"
#include "server/base/process/availability.h"
#include "server/durability/log/log_files.h"
#include "server/durability/log/log_listener.h"
#include "tests/support/sanitized.h"
#include "tests/support/virtual_disk.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

// Each read advances the monotonic time by `step_us`. The log reads the time before and after a
// sync, so `step_us` is the duration that it measures.
class SteppingClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return 0; }
  int64_t monotonic_us() const override { return now_us_ += step_us; }
  std::atomic<int64_t> step_us{0};

 private:
  mutable std::atomic<int64_t> now_us_{0};
};

struct Listener final : LogListener {
  void on_log_progress() override { on_progress(); }
  void on_log_fatal(const std::string& cause) override { ADD_FAILURE() << cause; }
  void on_log_event(std::string_view kind, int64_t duration_us) override {
    const std::scoped_lock lock(mutex);
    durations_us[std::string(kind)].push_back(duration_us);
  }
  std::function<void()> on_progress = [] {};
  std::mutex mutex;  // guards durations_us
  std::map<std::string, std::vector<int64_t>> durations_us;
};

class AppendLogTest : public ::testing::Test {
 protected:
  void open(const char* policy) {
    const std::array<const char*, 3> options = {"server", "--appendfsync", policy};
    ASSERT_TRUE(config_.load(static_cast<int>(options.size()), options.data()));
    ASSERT_TRUE(
        log_.files().writer().open({}, std::nullopt, 0, persistence::AofWriter::Begin::kNow));
    journal_.set_active(true);
    disk_.restart_count();
  }
  // Appends the command `SET name value` to the journal. Returns the journal's end offset, which
  // may include commands that other threads appended later.
  uint64_t append(std::string_view name) {
    journal_.append(0, std::array<std::string_view, 3>{"SET", name, "value"});
    return journal_.end_offset();
  }
  bool becomes_safe(uint64_t offset) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!log_.is_safe(offset)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // Starts the log and lets it sync 200 times. The clock makes each sync seem to take `sync_us`.
  void show_disk(int64_t sync_us) {
    clock_.step_us = sync_us;
    log_.start();
    for (int i = 0; i < 200; ++i) {
      const uint64_t end = append("key");
      log_.commit(1);
      ASSERT_TRUE(becomes_safe(end));
    }
    log_.stop();
    disk_.restart_count();
  }

  Config config_;
  SteppingClock clock_;
  persistence::Journal journal_;
  VirtualDisk disk_;
  Availability availability_;
  Listener listener_;
  AppendLog log_{config_, clock_, journal_, disk_, availability_, &listener_};
};

TEST_F(AppendLogTest, EverySecondTheCallerWrites) {
  open("everysec");
  const uint64_t end = append("key");
  EXPECT_FALSE(log_.is_safe(end));
  log_.commit(0);
  EXPECT_TRUE(log_.is_safe(end));
  EXPECT_EQ(disk_.operation_count(), 1U);
}

TEST_F(AppendLogTest, WritesAreEventsOfLatencyWhileThoseAreWatched) {
  open("everysec");
  clock_.step_us = 1000;
  append("key");
  log_.write();
  EXPECT_TRUE(listener_.durations_us.empty());
  ASSERT_TRUE(config_.set({{{"latency-monitor-threshold", "1"}}}));
  append("key");
  log_.write();
  EXPECT_EQ(listener_.durations_us.size(), 2U);
  EXPECT_EQ(listener_.durations_us["aof-write"], std::vector<int64_t>{1000});
  EXPECT_EQ(listener_.durations_us["aof-write-alone"], std::vector<int64_t>{1000});
}

// A command that finds an item changes nothing, but its reply reveals the earlier write that added
// the item. So this reply, too, must wait until the log has reached the journal's end.
TEST_F(AppendLogTest, WriteWithoutEffectDependsOnJournalEnd) {
  open("everysec");
  const uint64_t end = append("key");
  EXPECT_EQ(log_.offset_of_replies(true), end);
  EXPECT_EQ(log_.offset_of_replies(false), end);
  disk_.fail_operation(1);
  log_.write();
  EXPECT_TRUE(log_.fails());
  std::thread([this, end] {
    EXPECT_EQ(log_.offset_of_replies(true), end) << "on a thread that has appended nothing";
    EXPECT_EQ(log_.offset_of_replies(false), 0U) << "reads go on";
  }).join();
}

TEST_F(AppendLogTest, FailingFileIsReportedAtOnce) {
  open("everysec");
  int reported = 0;
  listener_.on_progress = [&reported] { ++reported; };
  const uint64_t end = append("key");
  disk_.fail_operation(1);
  log_.write();
  EXPECT_FALSE(log_.is_safe(end));
  EXPECT_TRUE(log_.fails());
  EXPECT_EQ(reported, 1) << "clients that wait are answered by an error";
  EXPECT_NE(log_.failure_text().find("may be kept or lost"), std::string::npos);
  EXPECT_FALSE(log_.takes_more());
  ASSERT_TRUE(log_.flush());
  EXPECT_TRUE(log_.is_safe(end)) << "it was kept";
}

TEST_F(AppendLogTest, AFlushThatFailsRefusesWrites) {
  open("everysec");
  append("key");
  disk_.fail_operation(1);
  EXPECT_FALSE(log_.flush());
  EXPECT_TRUE(log_.fails());
}

// If too many bytes wait to be written, the log rejects further bytes. Otherwise a replica that
// receives its leader's stream would need memory without a limit.
TEST_F(AppendLogTest, LogFarBehindRejectsFurtherBytes) {
  open("everysec");
  const std::string value(size_t{1} << 20, 'v');
  for (int i = 0; i < 32; ++i) {
    EXPECT_TRUE(log_.takes_more());
    journal_.append(0, std::array<std::string_view, 3>{"SET", "key", value});
  }
  EXPECT_FALSE(log_.takes_more());
  log_.write();
  EXPECT_TRUE(log_.takes_more());
}

// With appendfsync everysec, a reply waits until its offset is written. With appendfsync always, it
// waits until its offset is synced. After a change to always, the sync must notify waiting replies,
// even if a notification has already reported that their offset is written.
TEST_F(AppendLogTest, SyncAfterSwitchToAlwaysIsNotified) {
  open("everysec");
  // The counter has shared ownership, because the log's thread still uses it after this function
  // has returned.
  const auto notified = std::make_shared<std::atomic<int>>(0);
  listener_.on_progress = [notified] { ++*notified; };
  log_.start();
  ASSERT_TRUE(becomes_safe(append("synced by the first step")));
  const uint64_t end = append("key");
  while (!log_.is_safe(end)) log_.wake();
  ASSERT_TRUE(support::wait_until([&] { return *notified > 1; }));
  EXPECT_LT(log_.writer().synced_offset(), end);
  log_.stop();  // the log's thread would sync at its next tick
  ASSERT_TRUE(config_.set({{{"appendfsync", "always"}}}));
  EXPECT_FALSE(log_.is_safe(end));
  *notified = 0;
  log_.start();
  log_.commit(1);
  EXPECT_TRUE(support::wait_until([&] { return *notified > 0 && log_.is_safe(end); }));
}

TEST_F(AppendLogTest, AlwaysTheCallerLeavesASlowDiskAlone) {
  open("always");
  show_disk(5000);
  const uint64_t end = append("key");
  log_.commit(0);
  log_.commit(1);
  EXPECT_FALSE(log_.is_safe(end));
  EXPECT_EQ(disk_.operation_count(), 0U);
  log_.start();
  EXPECT_TRUE(becomes_safe(end));
}

TEST_F(AppendLogTest, AlwaysTheCallerSyncsAQuickDisk) {
  open("always");
  show_disk(50);
  const uint64_t end = append("key");
  log_.write();
  log_.commit(0);
  EXPECT_FALSE(log_.is_safe(end)) << "no reply waits yet";
  log_.commit(1);
  EXPECT_TRUE(log_.is_safe(end));
  EXPECT_EQ(disk_.operation_count(), 2U) << "a write and a sync";
}

TEST_F(AppendLogTest, ASlowSyncKeepsTheNextOnesOffTheCaller) {
  open("always");
  show_disk(50);
  clock_.step_us = 20'000;
  append("hiccup");
  log_.commit(1);
  const uint64_t end = append("key");
  log_.commit(1);
  EXPECT_FALSE(log_.is_safe(end));
  log_.start();
  EXPECT_TRUE(becomes_safe(end));
}

// With appendfsync always, a failing log ends the process. With everysec, a failing log only
// rejects writes. If the log failed before the change to always, a waiting client must not end the
// process.
TEST_F(AppendLogTest, AlwaysALogThatFailsIsTheLogsThreads) {
  open("always");
  show_disk(50);
  const NamedValue every_second{"appendfsync", "everysec"};
  ASSERT_TRUE(config_.set({&every_second, 1}));
  availability_.append_log_failed("of the test");
  const NamedValue always{"appendfsync", "always"};
  ASSERT_TRUE(config_.set({&always, 1}));
  const uint64_t end = append("key");
  log_.commit(1);
  EXPECT_FALSE(log_.is_safe(end));
  EXPECT_EQ(disk_.operation_count(), 0U);
}

// Like an I/O thread, each thread of this test checks its waiting replies only after a
// notification. The log has no thread of its own here, because the work of that thread could hide a
// missing notification.
TEST_F(AppendLogTest, ThreadIsNotifiedOfAnotherThreadsSync) {
  constexpr int kThreads = 4;
  constexpr int kWrites = support::rounds(3000, 300);
  open("always");
  show_disk(0);
  struct NotifiedThread {
    std::atomic<bool> wants{false};
    std::atomic<bool> is{false};
  };
  std::array<NotifiedThread, kThreads> reported;
  listener_.on_progress = [&reported] {
    for (NotifiedThread& thread : reported) {
      if (thread.wants.exchange(false)) thread.is = true;
    }
  };
  std::atomic<int> forgotten{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&, index] {
      NotifiedThread& mine = reported[static_cast<size_t>(index)];
      for (int i = 0; i < kWrites && forgotten == 0; ++i) {
        const uint64_t end = append("key");
        size_t clients = 1;
        while (true) {
          mine.wants = true;
          log_.commit(std::exchange(clients, 0));
          if (log_.is_safe(end)) break;
          const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (!mine.is.exchange(false) && !log_.is_safe(end) && forgotten == 0) {
            if (std::chrono::steady_clock::now() > deadline) ++forgotten;
            std::this_thread::yield();
          }
          if (forgotten != 0) break;
        }
        mine.wants = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(forgotten, 0);
}

// Several threads write repeatedly, each for one client. A thread may rely on a later writer to
// wake the log's thread. But each thread must get its reply even if no later writer follows.
TEST_F(AppendLogTest, AlwaysAnswersAllWhoWait) {
  constexpr int kClients = 4;
  constexpr int kWrites = 300;
  open("always");
  clock_.step_us = 5000;
  log_.start();
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  std::array<int, kClients> answered{};
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([this, client, &answered] {
      // Each client makes fewer writes than the client before it, so that at last only one client
      // writes.
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
  const auto content =
      disk_.content(log_.files().directory().place.path_of("appendonly.aof.1.incr.aof"));
  ASSERT_TRUE(content);
  EXPECT_NE(content->find("\r\n0:299\r\n"), std::string::npos);
  EXPECT_NE(content->find("\r\n3:74\r\n"), std::string::npos);
}

TEST_F(AppendLogTest, ClosedLogReleasesWaitingReplies) {
  open("always");
  log_.start();
  const uint64_t end = append("key");
  ASSERT_TRUE(log_.flush());
  journal_.set_active(false);
  log_.files().writer().close();
  log_.commit(1);
  EXPECT_TRUE(log_.is_safe(end + 1));
}

}  // namespace
}  // namespace server
