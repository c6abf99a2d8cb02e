// SPDX-License-Identifier: MIT
#include "server/durability/saves/saves.h"

#include <gtest/gtest.h>

#include "server/durability/durability_parts.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/snapshot_saver.h"
#include "tests/support/durable_process.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using virtual_disk::VirtualDisk;

TEST(SavesTest, ARewriteGoesBeforeASnapshot) {
  VirtualDisk disk;
  Process process(disk, "yes", SaveChild::start_here);
  Saves& saves = process.durability.saves;
  ASSERT_TRUE(saves.slot.claim(SaveTask::kTransfer));
  ASSERT_TRUE(saves.snapshots.start(true));
  ASSERT_TRUE(saves.rewrites.request());
  saves.slot.release();
  saves.start_what_is_due();
  EXPECT_EQ(saves.slot.task(), SaveTask::kRewrite);
  saves.poll();
  EXPECT_EQ(saves.rewrites.record().count, 1U);
  saves.start_what_is_due();
  EXPECT_EQ(saves.slot.task(), SaveTask::kSave);
  saves.poll();
  EXPECT_EQ(saves.snapshots.record().count, 1U);
}

TEST(SavesTest, AChildThatIsNotSparedIsStopped) {
  VirtualDisk disk;
  Process process(disk, "no", durable_process::start_slow_child);
  Saves& saves = process.durability.saves;
  ASSERT_TRUE(saves.snapshots.start(false));
  EXPECT_TRUE(saves.claim_from_child([] { return false; }, [] { return false; }));
  EXPECT_FALSE(saves.slot.has_child());
  EXPECT_EQ(saves.slot.task(), SaveTask::kSave);
}

TEST(SavesTest, CancelledTaskClaimsNothing) {
  VirtualDisk disk;
  Process process(disk, "no", durable_process::start_slow_child);
  Saves& saves = process.durability.saves;
  ASSERT_TRUE(saves.snapshots.start(false));
  EXPECT_FALSE(saves.claim_from_child([] { return true; }, [] { return true; }));
  EXPECT_TRUE(saves.slot.has_child());
}

}  // namespace
}  // namespace server
