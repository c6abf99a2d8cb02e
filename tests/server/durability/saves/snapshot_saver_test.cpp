// SPDX-License-Identifier: MIT
#include "server/durability/saves/snapshot_saver.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/keyspace/keyspace.h"
#include "persistence/bytes/byte_stream.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/durability/loading/data_replacer.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "tests/support/durable_process.h"
#include "tests/support/snapshots.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using virtual_disk::VirtualDisk;

class SnapshotSaverTest : public ::testing::Test {
 protected:
  void begin(const SaveChild::Starter& start_child) {
    process_ = std::make_unique<Process>(disk_, "no", start_child);
    process_->append("key", "value");
    process_->state.changes = 1;
  }
  SnapshotSaver& saver() { return process_->durability.saves().snapshots(); }
  bool has(Availability::Trouble trouble) { return process_->durability.availability.has(trouble); }

  VirtualDisk disk_;
  std::unique_ptr<Process> process_;
};

TEST_F(SnapshotSaverTest, AChildSavesWhatAStartFinds) {
  begin(SaveChild::start_here);
  EXPECT_EQ(saver().changes_since_save(), 1U);
  ASSERT_TRUE(saver().start(Locking::kTake, false));
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 1U);
  EXPECT_EQ(saver().changes_since_save(), 0U);
  const auto wanted = process_->contents();
  EXPECT_EQ(Process(disk_, "no", SaveChild::start_here).contents(), wanted);
}

TEST_F(SnapshotSaverTest, AFailedOneRefusesWritesUntilOneSucceeds) {
  begin(durable_process::start_failing_child);
  ASSERT_TRUE(saver().start(Locking::kTake, false));
  while (saver().record().last_was_ok) process_->durability.tick();
  EXPECT_TRUE(has(Availability::kSnapshotFailed));
  EXPECT_EQ(saver().record().failures_in_a_row, 1U);
  ASSERT_TRUE(saver().save(Locking::kTake));
  EXPECT_FALSE(has(Availability::kSnapshotFailed));
  EXPECT_TRUE(saver().record().last_was_ok);
}

TEST_F(SnapshotSaverTest, OneThatWasStoppedIsNoFailure) {
  begin(durable_process::start_slow_child);
  ASSERT_TRUE(saver().start(Locking::kTake, false));
  EXPECT_FALSE(saver().save(Locking::kTake)) << "a child saves";
  SaveSlot& slot = process_->durability.saves().slot();
  slot.kill_child();
  while (slot.task() != SaveTask::kNone) process_->durability.tick();
  EXPECT_FALSE(has(Availability::kSnapshotFailed));
  EXPECT_TRUE(saver().record().last_was_ok);
}

TEST_F(SnapshotSaverTest, AScheduledOneBeginsWhenTheSlotIsFree) {
  begin(SaveChild::start_here);
  SaveSlot& slot = process_->durability.saves().slot();
  ASSERT_TRUE(slot.claim(SaveTask::kRewrite));
  EXPECT_FALSE(saver().start(Locking::kTake, false));
  const auto scheduled = saver().start(Locking::kTake, true);
  ASSERT_TRUE(scheduled);
  EXPECT_EQ(*scheduled, SaveStart::kScheduled);
  process_->durability.tick();
  EXPECT_EQ(slot.fork_count(), 0U);
  slot.release();
  process_->durability.tick();
  process_->durability.tick();
  EXPECT_EQ(saver().record().count, 1U);
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

// A leader's data take the place of those that are being saved.
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
  ASSERT_TRUE(saver().start(Locking::kTake, false));
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
