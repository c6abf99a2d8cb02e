// SPDX-License-Identifier: MIT
//
// If a sync of the append log has failed, the log is complete only after a new base file is
// written. Tests how soon the server writes this file.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/saves.h"
#include "server/session/session.h"
#include "tests/support/captured_log.h"
#include "tests/support/manual_clock.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

constexpr int64_t kTenSecondsMs = 10'000;
constexpr std::string_view kRefused = "The append log fails, writes are refused until it works";

class NoReplayer final : public Replayer {
 public:
  std::string_view execute(persistence::Words /*words*/) override { return "+OK\r\n"; }
};

class LostSyncTest : public ::testing::Test {
 protected:
  LostSyncTest() {
    const std::array<const char*, 7> options = {
        "server", "--appendonly", "yes", "--save", "", "--auto-aof-rewrite-percentage", "0"};
    EXPECT_TRUE(config_.load(static_cast<int>(options.size()), options.data()));
    EXPECT_TRUE(durability_.recover([](CommandOrigin) { return std::make_unique<NoReplayer>(); }));
  }
  void write() { journal_.append(0, std::array<std::string_view, 3>{"SET", "key", "value"}); }
  // Appends a command to the log. The log writes the command, but its sync and all later disk
  // operations fail.
  void lose_sync() {
    write();
    disk_.restart_count();
    disk_.fail_from_operation(2);
    EXPECT_FALSE(durability_.append_log.flush());
    ASSERT_TRUE(durability_.log_writer().has_lost_sync());
  }
  // Calls tick() every 100 ms of simulated time, for `time_ms` or until `is_enough` returns true.
  // Returns the simulated time that has passed, in ms.
  template <class Condition>
  int64_t live(int64_t time_ms, Condition is_enough) {
    const int64_t begin_ms = clock_.now_ms;
    while (clock_.now_ms - begin_ms < time_ms && !is_enough()) {
      durability_.tick();
      clock_.now_ms += 100;
    }
    return clock_.now_ms - begin_ms;
  }
  uint64_t failures() const { return durability_.saves.rewrites.record().failures_in_a_row; }

  Config config_;
  ManualClock clock_;
  core::keyspace::Keyspace keyspace_{2, 1};
  persistence::Journal journal_;
  virtual_disk::VirtualDisk disk_;
  ServerState state_;
  Durability durability_{
      {{config_, clock_, keyspace_, journal_, disk_, state_}, SaveChild::start_here}};
};

TEST_F(LostSyncTest, ADiskThatWorksAgainIsFoundWithinTenSeconds) {
  for (const int64_t failing_ms : {int64_t{20'000}, int64_t{4 * 3'600'000}}) {
    lose_sync();
    uint64_t before = failures();
    int64_t silent_ms = 0;
    for (int64_t at_ms = 0; at_ms < failing_ms; at_ms += silent_ms) {
      silent_ms = live(kTenSecondsMs + 1, [&] { return failures() > before; });
      ASSERT_LE(silent_ms, kTenSecondsMs) << "between two attempts, after " << at_ms << " ms";
      before = failures();
    }
    disk_.restart_count();
    const int64_t took_ms =
        live(3'600'000, [this] { return !durability_.log_writer().has_lost_sync(); });
    EXPECT_LE(took_ms, kTenSecondsMs) << "after " << failing_ms << " ms of failing";
  }
}

// After ten failed rewrites the server waits long before the next attempt. But after a failed sync,
// it must try to write a new base file within ten seconds.
TEST_F(LostSyncTest, TheFirstAttemptDoesNotWaitForEarlierFailures) {
  for (int i = 0; i < 12; ++i) {
    disk_.restart_count();
    disk_.fail_operation(3);
    ASSERT_TRUE(durability_.request_rewrite());
    durability_.tick();
    durability_.tick();
  }
  ASSERT_GE(failures(), 10U);
  disk_.restart_count();
  lose_sync();
  const uint64_t before = failures();
  EXPECT_LE(live(7'200'000, [&] { return failures() > before; }), kTenSecondsMs);
}

// A rewrite begins a new log file. The rewrite syncs the previous log file on a separate thread,
// and this sync fails here.
TEST_F(LostSyncTest, ASyncThatFailsInARewriteRefusesWrites) {
  write();
  durability_.append_log.write();
  disk_.restart_count();
  disk_.fail_operation(1);
  ASSERT_TRUE(durability_.request_rewrite());
  durability_.tick();
  ASSERT_TRUE(durability_.log_writer().has_lost_sync());
  EXPECT_TRUE(durability_.append_log.fails());
}

TEST_F(LostSyncTest, AFailedFlushIsLogged) {
  const CapturedLog log;
  lose_sync();
  EXPECT_EQ(log.count(kRefused), 1U);
}

// When the child process has written the base, the new log file is synced. This sync fails here.
TEST_F(LostSyncTest, ASyncThatFailsAfterTheChildIsLogged) {
  const CapturedLog log;
  ASSERT_TRUE(durability_.request_rewrite());
  durability_.tick();
  write();
  disk_.restart_count();
  disk_.fail_from_operation(1);
  durability_.tick();
  ASSERT_TRUE(durability_.log_writer().has_lost_sync());
  EXPECT_TRUE(durability_.append_log.fails());
  EXPECT_EQ(log.count(kRefused), 1U);
}

}  // namespace
}  // namespace server
