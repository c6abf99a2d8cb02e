// SPDX-License-Identifier: MIT
//
// Tests that the append log can be switched on and off, and rewritten while it is off.
#include "server/durability/loading/log_switch.h"

#include <gtest/gtest.h>

#include <chrono>

#include "server/base/process/server_state.h"
#include "server/durability/durability_parts.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "tests/support/durable_process.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using virtual_disk::VirtualDisk;

// Returns the result of a call of await() that has waited until the switch. After a second, await()
// returns even if the thread has not switched the log yet.
core::Result<> await_switch(LogSwitch& log_switch) {
  using SteadyClock = std::chrono::steady_clock;
  const auto end = SteadyClock::now() + support::deadline();
  while (true) {
    const auto began = SteadyClock::now();
    auto switched = log_switch.await();
    const auto now = SteadyClock::now();
    if (now - began < std::chrono::seconds(1) || now > end) return switched;
  }
}

TEST(LogSwitchTest, RewriteWithoutLogServesALaterStart) {
  VirtualDisk disk;
  snapshots::Contents wanted;
  for (const std::string_view has_log : {"no", "yes", "no"}) {
    Process process(disk, has_log, SaveChild::start_here);
    process.append("key", has_log);
    wanted = process.contents();
    ASSERT_TRUE(process.durability.request_rewrite());
    for (int i = 0; i < 3; ++i) process.durability.tick();
    EXPECT_EQ(process.durability.saves.rewrites.record().count, 1u);
    EXPECT_EQ(process.durability.log_is_on(), has_log == "yes");
    ASSERT_TRUE(process.durability.finish());
  }
  disk.cut_power(virtual_disk::Unsynced::kLost);
  EXPECT_EQ(Process(disk, "yes", SaveChild::start_here).contents(), wanted);
}

TEST(LogSwitchTest, LogIsOnAfterReplyEvenWhileAChildSaves) {
  VirtualDisk disk;
  Process process(disk, "no", durable_process::start_slow_child);
  process.durability.start();
  ASSERT_TRUE(process.durability.saves.snapshots.start(false));
  for (const bool is_on : {true, false, true}) {
    process.durability.log_switch.want(is_on);
    EXPECT_TRUE(await_switch(process.durability.log_switch));
    EXPECT_EQ(process.durability.log_is_on(), is_on);
  }
}

TEST(LogSwitchTest, FailedLogSwitchIsReportedAtOnce) {
  VirtualDisk disk;
  Process process(disk, "no", SaveChild::start_here);
  process.durability.start();
  disk.restart_count();
  disk.fail_from_operation(1);
  process.durability.log_switch.want(true);
  EXPECT_FALSE(await_switch(process.durability.log_switch));
  EXPECT_FALSE(process.durability.log_is_on());
  disk.restart_count();
  EXPECT_TRUE(await_switch(process.durability.log_switch));
  EXPECT_TRUE(process.durability.log_is_on());
}

// SHUTDOWN may be writing the base of the log, so the log must stay open until SHUTDOWN has failed.
TEST(LogSwitchTest, LogStaysOpenWhileShutdownHoldsTheSlot) {
  VirtualDisk disk;
  Process process(disk, "yes", SaveChild::start_here);
  SaveSlot& slot = process.durability.saves.slot;
  slot.refuse_children(true);
  ASSERT_TRUE(slot.claim(SaveTask::kSave));
  process.durability.log_switch.want(false);
  process.durability.log_switch.follow();
  EXPECT_TRUE(process.durability.log_is_on());
  slot.release();
  slot.refuse_children(false);
  process.durability.log_switch.follow();
  EXPECT_FALSE(process.durability.log_is_on());
}

TEST(LogSwitchTest, LogIsNotSwitchedWhileDataAreLoaded) {
  VirtualDisk disk;
  Process process(disk, "yes", SaveChild::start_here);
  LogSwitch& log_switch = process.durability.log_switch;
  for (const bool is_on : {false, true}) {
    process.durability.availability.begin(Availability::kLoading);
    log_switch.want(is_on);
    log_switch.follow();
    EXPECT_EQ(process.durability.log_is_on(), !is_on);
    process.durability.availability.end(Availability::kLoading);
    log_switch.follow();
    EXPECT_EQ(process.durability.log_is_on(), is_on);
  }
}

// The paths of all files are relative to `dir`. So `dir` may be changed only while the append log
// is off and no files are loaded or saved.
TEST(LogSwitchTest, TheDirectoryChangesWhenNothingIsUsedThere) {
  VirtualDisk disk;
  Process process(disk, "no", durable_process::start_slow_child);
  int changes = 0;
  const auto change = [&changes]() -> core::Result<> {
    ++changes;
    return {};
  };
  EXPECT_TRUE(process.durability.log_switch.change_directory(change));
  EXPECT_TRUE(process.durability.log_switch.change_directory(change));
  EXPECT_EQ(changes, 2);
  process.durability.log_switch.want(true);
  EXPECT_FALSE(process.durability.log_switch.change_directory(change));
  process.durability.log_switch.want(false);
  process.durability.availability.begin(Availability::kLoading);
  EXPECT_FALSE(process.durability.log_switch.change_directory(change));
  process.durability.availability.end(Availability::kLoading);
  ASSERT_TRUE(process.durability.saves.snapshots.start(false));
  EXPECT_FALSE(process.durability.log_switch.change_directory(change));
  EXPECT_EQ(changes, 2);
}

}  // namespace
}  // namespace server
