// SPDX-License-Identifier: MIT
//
// Tests the end of a server process. Its child process may be saving at that moment. The next start
// must find all the data.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "persistence/aof/aof_writer.h"
#include "server/durability/durability_parts.h"
#include "server/durability/loading/log_switch.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "tests/support/durable_process.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using durable_process::start_failing_child;
using durable_process::start_slow_child;
using snapshots::Contents;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

class DurabilityEndingTest : public ::testing::Test {
 protected:
  void begin(std::string_view has_log, SaveChild::Starter start_child) {
    process_ = std::make_unique<Process>(disk_, has_log, std::move(start_child));
    process_->append("key", "before");
  }
  void expect_found() {
    const Contents wanted = process_->contents();
    ASSERT_TRUE(process_->durability.finish());
    process_.reset();
    disk_.cut_power(Unsynced::kLost);
    EXPECT_EQ(Process(disk_, "yes", SaveChild::start_here).contents(), wanted);
  }

  VirtualDisk disk_;
  std::unique_ptr<Process> process_;
};

TEST_F(DurabilityEndingTest, ALogThatIsStillToBeSwitchedOnIsWhole) {
  begin("no", SaveChild::start_here);
  process_->durability.log_switch.want(true);
  EXPECT_TRUE(process_->durability.prepare_end(FinalSave::kNone));
  expect_found();
}

TEST_F(DurabilityEndingTest, FirstBaseIsAwaitedOrWrittenAgain) {
  begin("no", start_failing_child);
  process_->durability.log_switch.want(true);
  process_->durability.tick();
  ASSERT_TRUE(process_->durability.log_writer().needs_base());
  process_->append("key", " and after");
  EXPECT_TRUE(process_->durability.prepare_end(FinalSave::kNone));
  expect_found();
}

TEST_F(DurabilityEndingTest, AFirstBaseThatCannotBeWrittenRefusesTheEnd) {
  begin("no", start_failing_child);
  process_->durability.log_switch.want(true);
  process_->durability.tick();
  disk_.restart_count();
  disk_.fail_from_operation(1);
  EXPECT_FALSE(process_->durability.prepare_end(FinalSave::kNone));
  disk_.restart_count();
  process_->append("key", " and after");
  EXPECT_TRUE(process_->durability.prepare_end(FinalSave::kNone));
  expect_found();
}

// During the shutdown, the main thread calls tick(). After the running child process has been
// stopped, tick() must not start the requested rewrite.
TEST_F(DurabilityEndingTest, NoOtherSaveBeginsWhenTheRunningOneIsStopped) {
  begin("yes", start_slow_child);
  Durability& durability = process_->durability;
  ASSERT_TRUE(durability.saves.snapshots.start(false));
  ASSERT_TRUE(durability.request_rewrite());
  std::atomic<bool> is_over{false};
  std::thread ticker([&] {
    while (!is_over) durability.tick();
  });
  EXPECT_TRUE(durability.prepare_end(FinalSave::kRequired));
  is_over = true;
  ticker.join();
  EXPECT_EQ(durability.saves.slot.fork_count(), 1u);
  expect_found();
}

// Repeats a shutdown. In the n-th run, the n-th disk operation of the shutdown fails.
TEST(DurabilityEnding, EndsWithoutSnapshotIfTheLogHoldsAll) {
  int ends_without = 0;
  bool has_failed = true;
  for (uint64_t operation = 1; has_failed; ++operation) {
    VirtualDisk disk;
    auto process = std::make_unique<Process>(disk, "yes", SaveChild::start_here);
    process->append("key", "before");
    disk.restart_count();
    disk.fail_from_operation(operation);
    const auto ready = process->durability.prepare_end(FinalSave::kBySavePoints);
    has_failed = disk.operation_count() >= operation;
    disk.restart_count();
    EXPECT_EQ(ready.has_value(), process->durability.log_holds_everything()) << operation;
    if (!ready) continue;
    if (has_failed) ++ends_without;
    ASSERT_TRUE(process->durability.finish());
    const Contents wanted = process->contents();
    process.reset();
    disk.cut_power(Unsynced::kLost);
    EXPECT_EQ(Process(disk, "yes", SaveChild::start_here).contents(), wanted) << operation;
  }
  EXPECT_GT(ends_without, 0);
}

TEST_F(DurabilityEndingTest, RequiredSnapshotRefusesTheEnd) {
  begin("yes", SaveChild::start_here);
  ASSERT_TRUE(process_->durability.append_log.flush());
  disk_.restart_count();
  disk_.fail_from_operation(1);
  EXPECT_FALSE(process_->durability.prepare_end(FinalSave::kRequired));
  EXPECT_TRUE(process_->durability.log_holds_everything());
}

TEST_F(DurabilityEndingTest, WithoutALogAFailedSnapshotRefusesTheEnd) {
  begin("no", SaveChild::start_here);
  disk_.restart_count();
  disk_.fail_from_operation(1);
  EXPECT_FALSE(process_->durability.prepare_end(FinalSave::kBySavePoints));
  EXPECT_FALSE(process_->durability.log_holds_everything());
}

TEST_F(DurabilityEndingTest, FromTheOrderToEndOnNoChildBegins) {
  begin("yes", SaveChild::start_here);
  Durability& durability = process_->durability;
  durability.saves.slot.refuse_children(true);
  EXPECT_FALSE(durability.saves.snapshots.start(false));
  EXPECT_FALSE(durability.request_rewrite());
  durability.tick();
  EXPECT_EQ(durability.saves.slot.fork_count(), 0u);
  durability.saves.slot.refuse_children(false);
  EXPECT_TRUE(durability.saves.snapshots.start(false));
}

}  // namespace
}  // namespace server
