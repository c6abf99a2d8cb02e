// SPDX-License-Identifier: MIT
#include "server/durability/saves/transfer_saver.h"

#include <gtest/gtest.h>

#include <mutex>
#include <optional>

#include "server/durability/durability_parts.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "tests/support/durable_process.h"
#include "tests/support/fixed_position.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using durable_process::Process;
using virtual_disk::VirtualDisk;

class TransferSaverTest : public ::testing::Test {
 protected:
  TransferSaverTest() {
    process_.durability.set_stream(&stream_);
    transfer_.prepare =
        [this](const persistence::RdbReplicationInfo& position) -> core::Result<std::vector<int>> {
      prepared_ = position.offset;
      return std::vector<int>{};
    };
    transfer_.write = [](const persistence::RdbWriteOptions&) -> core::Result<> {
      return core::Error{"ERR no replica reads it"};
    };
    transfer_.finished = [this](const core::Result<>& result) {
      EXPECT_EQ(process_.durability.saves.slot.task(), SaveTask::kNone);
      finished_ = result;
    };
  }
  TransferSaver& saver() { return process_.durability.saves.transfers; }

  FixedPosition stream_;
  VirtualDisk disk_;
  Process process_{disk_, "no", SaveChild::start_here};
  SnapshotTransfer transfer_;
  std::optional<int64_t> prepared_;
  std::optional<core::Result<>> finished_;
};

TEST_F(TransferSaverTest, TellsWhereTheSnapshotStandsAndHowItEnded) {
  ASSERT_TRUE(saver().start(transfer_));
  EXPECT_EQ(prepared_, 17);
  EXPECT_FALSE(finished_);
  process_.durability.tick();
  ASSERT_TRUE(finished_);
  EXPECT_EQ(finished_->error().message, "ERR no replica reads it");
}

TEST_F(TransferSaverTest, WithoutAStreamThereIsNothingToFollow) {
  stream_.is_active = false;
  EXPECT_FALSE(saver().start(transfer_));
  EXPECT_FALSE(prepared_);
  EXPECT_EQ(process_.durability.saves.slot.task(), SaveTask::kNone);
}

TEST_F(TransferSaverTest, BesideAnotherTaskAndBeforeAnEndNoneBegins) {
  SaveSlot& slot = process_.durability.saves.slot;
  ASSERT_TRUE(slot.claim(SaveTask::kSave));
  EXPECT_FALSE(saver().start(transfer_));
  slot.release();
  slot.refuse_children(true);
  EXPECT_FALSE(saver().start(transfer_));
  EXPECT_FALSE(prepared_);
}

}  // namespace
}  // namespace server
