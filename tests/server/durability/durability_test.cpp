// SPDX-License-Identifier: MIT
#include "server/durability/durability.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "tests/support/durable_process.h"

namespace server {
namespace {

using core::keyspace::Locking;
using durable_process::Process;

// A replica may hold a child's snapshot before the parent runs again.
TEST(Durability, AChildIsCountedBeforeAnybodyHearsOfIt) {
  virtual_disk::VirtualDisk disk;
  const Durability* durability = nullptr;
  uint64_t seen = 0;
  Process process(
      disk, "no",
      [&](const core::Clock& clock, const SaveChild::Work& work, std::vector<int> kept) {
        seen = durability->saves().slot().fork_count();
        return SaveChild::start_here(clock, work, std::move(kept));
      });
  durability = &process.durability;
  ASSERT_TRUE(process.durability.saves().snapshots().start(Locking::kTake, false));
  EXPECT_EQ(seen, 1u);
}

TEST(Durability, AForkThatFailsCountsAsNone) {
  virtual_disk::VirtualDisk disk;
  Process process(disk, "no",
                  [](const core::Clock&, const SaveChild::Work&,
                     const std::vector<int>&) -> core::Result<std::unique_ptr<SaveChild>> {
                    return core::Error{"ERR no memory"};
                  });
  EXPECT_FALSE(process.durability.saves().snapshots().start(Locking::kTake, false));
  EXPECT_EQ(process.durability.saves().slot().fork_count(), 0u);
}

}  // namespace
}  // namespace server
