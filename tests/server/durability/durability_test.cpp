// SPDX-License-Identifier: MIT
#include "server/durability/durability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability_parts.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "tests/support/durable_process.h"
#include "tests/support/virtual_disk.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;
using ::testing::HasSubstr;

// fork_count() must count a child process before it starts, because a replica may receive the
// child's snapshot before the parent process runs again.
TEST(Durability, AChildIsCountedBeforeAnybodyHearsOfIt) {
  virtual_disk::VirtualDisk disk;
  const Durability* durability = nullptr;
  uint64_t seen = 0;
  Process process(
      disk, "no",
      [&](const core::Clock& clock, const SaveChild::Work& work, ChildDescriptors descriptors) {
        seen = durability->saves.slot.fork_count();
        return SaveChild::start_here(clock, work, std::move(descriptors));
      });
  durability = &process.durability;
  ASSERT_TRUE(process.durability.saves.snapshots.start(false));
  EXPECT_EQ(seen, 1u);
}

TEST(Durability, AForkThatFailsCountsAsNone) {
  virtual_disk::VirtualDisk disk;
  Process process(disk, "no",
                  [](const core::Clock&, const SaveChild::Work&,
                     const ChildDescriptors&) -> core::Result<std::unique_ptr<SaveChild>> {
                    return core::Error{"ERR no memory"};
                  });
  EXPECT_FALSE(process.durability.saves.snapshots.start(false));
  EXPECT_EQ(process.durability.saves.slot.fork_count(), 0u);
}

// The tests run in temporary working directories.
class PreparedDurabilityTest : public ::testing::Test {
 protected:
  PreparedDurabilityTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_durability_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(root_ / "other");
    std::filesystem::current_path(root_);
    process_.config.replace(OptionId::kEnableProtectedConfigs, "yes");
  }
  ~PreparedDurabilityTest() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(root_);
  }
  // Returns CONFIG SET's error, or "" if it is OK.
  static std::string set(Process& process, const std::string& name, const std::string& value) {
    const auto done = process.config.set(std::array{NamedValue{name, value}}, Origin::kLocal);
    return done ? "" : done.error().message;
  }

  const std::filesystem::path before_ = std::filesystem::current_path();
  std::filesystem::path root_;
  virtual_disk::VirtualDisk disk_;
  Process process_{disk_, "no", durable_process::start_failing_child};
};

TEST_F(PreparedDurabilityTest, KeepsOthersOutAndLetsClientsWait) {
  ASSERT_TRUE(process_.durability.prepare());
  EXPECT_TRUE(process_.durability.availability.has(Availability::kLoading));
  virtual_disk::VirtualDisk disk;
  Process second(disk, "no", durable_process::start_failing_child);
  EXPECT_THAT(second.durability.prepare().error().message, HasSubstr("Another process uses"));
  EXPECT_FALSE(second.durability.availability.has(Availability::kLoading));
}

TEST_F(PreparedDurabilityTest, FollowsTheDirectoryWithItsLock) {
  ASSERT_TRUE(process_.durability.prepare());
  EXPECT_NE(set(process_, "dir", (root_ / "other").string()), "") << "data are being loaded";
  process_.durability.availability.end(Availability::kLoading);
  EXPECT_EQ(set(process_, "dir", (root_ / "other").string()), "");
  EXPECT_EQ(std::filesystem::current_path(), root_ / "other");
  virtual_disk::VirtualDisk disk;
  Process second(disk, "no", durable_process::start_failing_child);
  EXPECT_FALSE(second.durability.prepare());
  std::filesystem::current_path(root_);
  const auto prepared = second.durability.prepare();
  EXPECT_TRUE(prepared) << prepared.error().message;
}

TEST_F(PreparedDurabilityTest, SwitchesTheLogWithTheOption) {
  ASSERT_TRUE(process_.durability.prepare());
  process_.durability.availability.end(Availability::kLoading);
  EXPECT_EQ(set(process_, "appendonly", "yes"), "");
  process_.durability.tick();
  EXPECT_TRUE(process_.durability.log_is_on());
  EXPECT_NE(set(process_, "dir", (root_ / "other").string()), "") << "the log has its files open";
  EXPECT_EQ(set(process_, "appendonly", "no"), "");
  // CONFIG SET appendonly no takes effect when the child process that writes the log's base file
  // has ended.
  EXPECT_TRUE(support::wait_until([this] {
    process_.durability.tick();
    return !process_.durability.log_is_on();
  }));
}

}  // namespace
}  // namespace server
