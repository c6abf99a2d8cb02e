// SPDX-License-Identifier: MIT
#include "server/durability/saves/save_slot.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "server/durability/durability_parts.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/saves.h"
#include "tests/support/durable_process.h"
#include "tests/support/virtual_disk.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using durable_process::Process;
using virtual_disk::VirtualDisk;

class SaveSlotTest : public ::testing::Test {
 protected:
  // Claims the slot for a save and starts the child process that executes `work`.
  void begin(SaveSlot& slot, const SaveChild::Work& work) {
    ASSERT_TRUE(slot.claim(SaveTask::kSave));
    ASSERT_TRUE(slot.begin_child(work, {.purpose = "test"}));
  }
  static SaveEnd await_end(SaveSlot& slot) {
    std::optional<SaveEnd> end;
    EXPECT_TRUE(support::wait_until([&] { return (end = slot.take_ended()).has_value(); }));
    return end.value();
  }

  VirtualDisk disk_;
};

TEST_F(SaveSlotTest, OneTaskHasIt) {
  Process process(disk_, "no", SaveChild::start_here);
  SaveSlot& slot = process.durability.saves.slot;
  EXPECT_TRUE(slot.claim(SaveTask::kSave));
  EXPECT_FALSE(slot.claim(SaveTask::kRewrite));
  EXPECT_EQ(slot.task(), SaveTask::kSave);
  EXPECT_TRUE(process.state.may_have_child);
  slot.release();
  EXPECT_FALSE(process.state.may_have_child);
  EXPECT_TRUE(slot.claim(SaveTask::kRewrite));
}

TEST_F(SaveSlotTest, EndOfChildIsReturnedOnce) {
  Process process(disk_, "no", SaveChild::start);
  SaveSlot& slot = process.durability.saves.slot;
  process.state.changes = 7;
  begin(slot, [](SaveChild::Figures&) -> core::Result<> { return core::Error{"ERR no"}; });
  EXPECT_TRUE(slot.has_child());
  EXPECT_GE(slot.progress().running_us, 0);
  const SaveEnd end = await_end(slot);
  ASSERT_FALSE(end.result);
  EXPECT_EQ(end.result.error().message, "ERR no");
  EXPECT_FALSE(end.was_stopped);
  EXPECT_EQ(end.changes_at_fork, 7U);
  EXPECT_FALSE(slot.has_child());
  EXPECT_FALSE(slot.take_ended());
  EXPECT_EQ(slot.progress().running_us, -1);
  EXPECT_EQ(slot.fork_count(), 1U);
}

TEST_F(SaveSlotTest, AChildThatWasKilledHasBeenStopped) {
  Process process(disk_, "no", durable_process::start_slow_child);
  SaveSlot& slot = process.durability.saves.slot;
  begin(slot, [](SaveChild::Figures&) -> core::Result<> { return {}; });
  EXPECT_FALSE(slot.take_ended());
  slot.kill_child();
  EXPECT_TRUE(await_end(slot).was_stopped);
}

}  // namespace
}  // namespace server
