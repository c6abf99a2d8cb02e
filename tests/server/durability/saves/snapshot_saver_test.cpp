// SPDX-License-Identifier: MIT
#include "server/durability/saves/snapshot_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "core/bloom/arrays/array_memory.h"
#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability_parts.h"
#include "server/durability/loading/data_replacer.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "tests/support/captured_log.h"
#include "tests/support/durable_process.h"
#include "tests/support/fixed_position.h"
#include "tests/support/memory_streams.h"
#include "tests/support/sanitized.h"
#include "tests/support/snapshots.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using ::testing::HasSubstr;
using ::testing::Not;
using virtual_disk::VirtualDisk;

class SnapshotSaverTest : public ::testing::Test {
 protected:
  void begin(const SaveChild::Starter& start_child) {
    process_ = std::make_unique<Process>(disk_, "no", start_child);
    process_->append("key", "value");
    process_->state.changes = 1;
  }
  SnapshotSaver& saver() { return process_->durability.saves.snapshots; }
  bool has(Availability::Trouble trouble) { return process_->durability.availability.has(trouble); }

  VirtualDisk disk_;
  std::unique_ptr<Process> process_;
};

TEST_F(SnapshotSaverTest, AChildSavesWhatAStartFinds) {
  begin(SaveChild::start_here);
  EXPECT_EQ(saver().changes_since_save(), 1U);
  ASSERT_TRUE(saver().start(false));
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 1U);
  EXPECT_EQ(saver().changes_since_save(), 0U);
  const auto wanted = process_->contents();
  EXPECT_EQ(Process(disk_, "no", SaveChild::start_here).contents(), wanted);
}

TEST_F(SnapshotSaverTest, AScheduledOneBeginsByItself) {
  begin(SaveChild::start_here);
  const auto scheduled = saver().schedule();
  ASSERT_TRUE(scheduled);
  EXPECT_EQ(*scheduled, SaveStart::kScheduled);
  EXPECT_EQ(process_->durability.saves.slot.fork_count(), 0U);
  process_->durability.tick();
  EXPECT_EQ(process_->durability.saves.slot.fork_count(), 1U);
  EXPECT_FALSE(saver().schedule()) << "one is being made";
}

// Tests which replication offset a snapshot contains. A snapshot that the server process writes
// itself is always exact, unlike one that a child process writes.
class PlacedSnapshotTest : public SnapshotSaverTest {
 protected:
  PlacedSnapshotTest() {
    begin(SaveChild::start_here);
    process_->durability.set_stream(&stream_);
  }
  std::string saved_by_child() {
    EXPECT_TRUE(saver().start(false));
    process_->durability.tick();
    return disk_.content("dump.rdb").value_or("");
  }
  std::string saved_here() {
    EXPECT_TRUE(saver().save(Locking::kTake));
    return disk_.content("dump.rdb").value_or("");
  }

  FixedPosition stream_;
};

TEST_F(PlacedSnapshotTest, TellsWhereInTheStreamItStands) {
  for (const std::string& bytes : {saved_by_child(), saved_here()}) {
    EXPECT_THAT(bytes, HasSubstr("repl-offset"));
    EXPECT_THAT(bytes, Not(HasSubstr("bloomery-ahead")));
  }
}

TEST_F(PlacedSnapshotTest, OfDataThatNoStreamHasMadeThereIsNoPlace) {
  stream_.is_diverged = true;
  for (const std::string& bytes : {saved_by_child(), saved_here()}) {
    EXPECT_THAT(bytes, Not(HasSubstr("repl-offset")));
  }
}

// A child process that saves a shared array may also save bits that the server sets meanwhile. So
// the snapshot may be ahead of the offset that it contains.
TEST_F(PlacedSnapshotTest, WithArraysThatAChildSharesItMayBeAhead) {
  auto& memory = core::bloom::ArrayMemory::of_process();
  void* const array = memory.map(1 << 20);
  ASSERT_NE(array, nullptr);
  EXPECT_THAT(saved_by_child(), HasSubstr("bloomery-ahead"));
  EXPECT_THAT(saved_here(), Not(HasSubstr("bloomery-ahead")));
  memory.unmap(array, 1 << 20);
}

TEST_F(SnapshotSaverTest, AFailedOneRefusesWritesUntilOneSucceeds) {
  begin(durable_process::start_failing_child);
  ASSERT_TRUE(saver().start(false));
  while (saver().record().last_was_ok) process_->durability.tick();
  EXPECT_TRUE(has(Availability::kSnapshotFailed));
  EXPECT_EQ(saver().record().failures_in_a_row, 1U);
  ASSERT_TRUE(saver().save(Locking::kTake));
  EXPECT_FALSE(has(Availability::kSnapshotFailed));
  EXPECT_TRUE(saver().record().last_was_ok);
}

TEST_F(SnapshotSaverTest, OneThatWasStoppedIsNoFailure) {
  begin(durable_process::start_slow_child);
  ASSERT_TRUE(saver().start(false));
  EXPECT_FALSE(saver().save(Locking::kTake)) << "a child saves";
  SaveSlot& slot = process_->durability.saves.slot;
  slot.kill_child();
  while (slot.task() != SaveTask::kNone) process_->durability.tick();
  EXPECT_FALSE(has(Availability::kSnapshotFailed));
  EXPECT_TRUE(saver().record().last_was_ok);
}

// The file has the deleted keys. After a crash they would be back.
TEST_F(SnapshotSaverTest, AFlushReplacesTheSnapshot) {
  begin(durable_process::start_slow_child);
  ++process_->state.flushes;
  process_->durability.tick();
  EXPECT_EQ(process_->durability.saves.slot.task(), SaveTask::kNone) << "no save points are set";
  const NamedValue save_points[] = {{"save", "3600 1"}};
  ASSERT_TRUE(process_->config.set(save_points));
  ASSERT_TRUE(saver().start(false));
  SaveSlot& slot = process_->durability.saves.slot;
  const uint64_t forks = slot.fork_count();
  // While SHUTDOWN waits, no save begins. The flush is not forgotten if the shutdown is aborted.
  slot.refuse_children(true);
  ++process_->state.flushes;
  process_->durability.tick();
  slot.refuse_children(false);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (slot.fork_count() == forks && std::chrono::steady_clock::now() < end) {
    process_->durability.tick();
  }
  EXPECT_EQ(slot.fork_count(), forks + 1);
  EXPECT_EQ(slot.task(), SaveTask::kSave);
  EXPECT_FALSE(has(Availability::kSnapshotFailed));
}

TEST_F(SnapshotSaverTest, AnEndWithoutASaveKeepsAFlush) {
  begin(SaveChild::start_here);
  ASSERT_TRUE(saver().save(Locking::kTake));
  const NamedValue save_points[] = {{"save", "3600 1"}};
  ASSERT_TRUE(process_->config.set(save_points));
  (void)process_->keyspace.flush_all();
  ++process_->state.flushes;
  EXPECT_TRUE(saver().owes_flush());
  EXPECT_TRUE(process_->durability.prepare_end(FinalSave::kNone));
  EXPECT_FALSE(saver().owes_flush());
  EXPECT_TRUE(Process(disk_, "no", SaveChild::start_here).contents().empty());
}

TEST_F(SnapshotSaverTest, OneInThisProcessIsMadeBesideARewrite) {
  begin(SaveChild::start_here);
  SaveSlot& slot = process_->durability.saves.slot;
  ASSERT_TRUE(slot.claim(SaveTask::kRewrite));
  EXPECT_TRUE(saver().save(Locking::kTake));
  EXPECT_EQ(saver().changes_since_save(), 0U);
  EXPECT_EQ(slot.task(), SaveTask::kRewrite) << "it goes on";
  const auto wanted = process_->contents();
  EXPECT_EQ(Process(disk_, "no", SaveChild::start_here).contents(), wanted);
}

TEST_F(SnapshotSaverTest, ARewriteThatBeginsOrEndsMeanwhileRefusesNone) {
  begin(SaveChild::start_here);
  SaveSlot& slot = process_->durability.saves.slot;
  std::atomic<bool> is_over{false};
  std::thread rewrites([&] {
    while (!is_over) {
      if (slot.claim(SaveTask::kRewrite)) slot.release();
    }
  });
  int refused = 0;
  for (int i = 0; i < support::rounds(10'000, 1'000); ++i)
    refused += saver().save(Locking::kTake) ? 0 : 1;
  is_over = true;
  rewrites.join();
  EXPECT_EQ(refused, 0);
}

TEST_F(SnapshotSaverTest, NoneIsMadeBesideASnapshotForReplicas) {
  begin(SaveChild::start_here);
  ASSERT_TRUE(process_->durability.saves.slot.claim(SaveTask::kTransfer));
  EXPECT_FALSE(saver().save(Locking::kTake));
}

TEST_F(SnapshotSaverTest, AScheduledOneBeginsWhenTheSlotIsFree) {
  begin(SaveChild::start_here);
  SaveSlot& slot = process_->durability.saves.slot;
  ASSERT_TRUE(slot.claim(SaveTask::kRewrite));
  EXPECT_FALSE(saver().start(false));
  const auto scheduled = saver().start(true);
  ASSERT_TRUE(scheduled);
  EXPECT_EQ(*scheduled, SaveStart::kScheduled);
  process_->durability.tick();
  EXPECT_EQ(slot.fork_count(), 0U);
  slot.release();
  process_->durability.tick();
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 1U);
}

TEST_F(SnapshotSaverTest, AScheduledOneStaysWhileAnotherTaskRuns) {
  begin(SaveChild::start_here);
  ASSERT_TRUE(saver().schedule());
  SaveSlot& slot = process_->durability.saves.slot;
  ASSERT_TRUE(slot.claim(SaveTask::kRewrite));
  saver().start_if_due();
  EXPECT_EQ(slot.fork_count(), 0U);
  slot.release();
  process_->durability.tick();
  EXPECT_EQ(slot.fork_count(), 1U);
}

// While writes are refused, no save point is reached.
TEST_F(SnapshotSaverTest, AFailedOneIsTriedAgain) {
  begin(durable_process::start_failing_child);
  const NamedValue points{"save", "3600 1000"};
  ASSERT_TRUE(process_->config.set({&points, 1}));
  SaveSlot& slot = process_->durability.saves.slot;
  ASSERT_TRUE(saver().start(false));
  while (slot.task() != SaveTask::kNone) process_->durability.tick();
  ASSERT_TRUE(has(Availability::kSnapshotFailed));
  process_->clock.now_ms += 4999;
  process_->durability.tick();
  EXPECT_EQ(slot.fork_count(), 1U);
  process_->clock.now_ms += 1;
  process_->durability.tick();
  EXPECT_EQ(slot.fork_count(), 2U);
}

TEST_F(SnapshotSaverTest, AFailedForkIsLogged) {
  begin([](const core::Clock&, const SaveChild::Work&,
           ChildDescriptors) -> core::Result<std::unique_ptr<SaveChild>> {
    return core::Error{"ERR no memory"};
  });
  const CapturedLog log;
  EXPECT_FALSE(saver().start(false));
  EXPECT_EQ(log.count("Can't save in background: ERR no memory"), 1U);
}

TEST_F(SnapshotSaverTest, ASavePointBeginsOne) {
  begin(SaveChild::start_here);
  const NamedValue points{"save", "60 1"};
  ASSERT_TRUE(process_->config.set({&points, 1}));
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 0U);
  process_->clock.now_ms += 62'000;
  process_->durability.tick();
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 1U);
}

TEST_F(SnapshotSaverTest, StepsOfTheWallClockMoveNoSavePoint) {
  begin(SaveChild::start_here);
  const NamedValue points{"save", "60 1"};
  ASSERT_TRUE(process_->config.set({&points, 1}));
  process_->clock.wall_step_ms = 86'400'000;
  process_->durability.tick();
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 0U);
  process_->clock.wall_step_ms = -86'400'000;
  process_->clock.now_ms += 62'000;
  process_->durability.tick();
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 1U);
}

// While a child process saves the old data, a leader's snapshot replaces them. This stops the child
// process, and must not count as a failed save.
TEST_F(SnapshotSaverTest, OneThatANewSnapshotStopsIsNoFailure) {
  begin(durable_process::start_slow_child);
  core::keyspace::Keyspace leaders(1, 1);
  const auto key = leaders.ref("key");
  ASSERT_TRUE(leaders.insert(0, key).set_string("leader's"));
  std::string bytes;
  persistence::StringSink sink(bytes);
  ASSERT_TRUE(persistence::write_rdb(sink, leaders, {}));
  disk_.put("temp-7-received.rdb", bytes);
  process_->durability.start();
  ASSERT_TRUE(saver().start(false));
  Replacement replacement;
  replacement.path = "temp-7-received.rdb";
  ASSERT_TRUE(process_->durability.replace_data(replacement));
  EXPECT_EQ(process_->contents(), snapshots::contents(leaders));
  EXPECT_TRUE(saver().record().last_was_ok);
  EXPECT_EQ(saver().record().failures_in_a_row, 0U);
  EXPECT_FALSE(has(Availability::kSnapshotFailed));
}

}  // namespace
}  // namespace server
