// SPDX-License-Identifier: MIT
#include "server/durability/loading/data_loader.h"

#include <gtest/gtest.h>

#include "server/base/process/server_state.h"
#include "server/durability/durability_parts.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "tests/support/durable_process.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using virtual_disk::VirtualDisk;

class DataLoaderTest : public ::testing::Test {
 protected:
  void begin(std::string_view has_log) {
    process_ = std::make_unique<Process>(disk_, has_log, SaveChild::start_here);
    process_->append("key", "value");
  }
  DataLoader& loader() { return process_->durability.loader; }

  VirtualDisk disk_;
  std::unique_ptr<Process> process_;
};

TEST_F(DataLoaderTest, AReloadBringsBackWhatWasSaved) {
  begin("no");
  const auto saved = process_->contents();
  ASSERT_TRUE(loader().begin_reload());
  EXPECT_TRUE(process_->durability.availability.has(Availability::kLoading));
  EXPECT_FALSE(loader().begin_reload()) << "one at a time";
  ASSERT_TRUE(loader().reload_snapshot(true));
  bool is_notified = false;
  loader().end_reload([&] { is_notified = true; });
  EXPECT_TRUE(is_notified);
  EXPECT_FALSE(process_->durability.availability.any());
  EXPECT_EQ(process_->contents(), saved);
}

TEST_F(DataLoaderTest, WithoutSavingTheOldSnapshotComesBack) {
  begin("no");
  const auto saved = process_->contents();
  ASSERT_TRUE(process_->durability.saves.snapshots.save(Locking::kTake));
  process_->append("key", " and more");
  ASSERT_TRUE(loader().begin_reload());
  ASSERT_TRUE(loader().reload_snapshot(false));
  loader().end_reload([] {});
  EXPECT_EQ(process_->contents(), saved);
}

TEST_F(DataLoaderTest, TheLogIsReplayedToItsEnd) {
  begin("yes");
  const auto wanted = process_->contents();
  ASSERT_TRUE(loader().begin_reload());
  ASSERT_TRUE(loader().reload_log());
  loader().end_reload([] {});
  EXPECT_EQ(process_->contents(), wanted);
}

TEST_F(DataLoaderTest, WithoutALogThereIsNothingToReplay) {
  begin("no");
  const auto wanted = process_->contents();
  ASSERT_TRUE(loader().begin_reload());
  EXPECT_FALSE(loader().reload_log());
  loader().end_reload([] {});
  EXPECT_EQ(process_->contents(), wanted);
}

}  // namespace
}  // namespace server
