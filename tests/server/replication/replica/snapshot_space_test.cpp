// SPDX-License-Identifier: MIT
#include "server/replication/replica/snapshot_space.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/virtual_disk.h"

namespace server {
namespace {

constexpr int64_t kMarked = -1;
constexpr uint64_t kMebibyte = uint64_t{1} << 20;

TEST(SnapshotSpace, AnnouncedSizeMustFit) {
  virtual_disk::VirtualDisk disk;
  disk.set_free_bytes(160 * kMebibyte);
  const auto fits = [&](int64_t announced) {
    return bool(SnapshotSpace(disk, "dir").check(0, announced));
  };
  EXPECT_TRUE(fits(0));
  EXPECT_TRUE(fits(150 * kMebibyte));
  EXPECT_FALSE(fits(151 * kMebibyte)) << "a sixteenth stays free";
  EXPECT_FALSE(fits(std::numeric_limits<int64_t>::max()));
}

TEST(SnapshotSpace, EndlessSnapshotStopsBeforeTheDiskIsFull) {
  virtual_disk::VirtualDisk disk;
  disk.add_directory("dir");
  disk.set_free_bytes(32 * kMebibyte);
  auto file = disk.open_append("dir/snapshot", persistence::OpenMode::kCreate).value();
  SnapshotSpace space(disk, "dir");
  const std::string piece(kMebibyte, 'x');
  uint64_t received = 0;
  while (space.check(received, kMarked)) {
    ASSERT_TRUE(file->write(piece));
    received += piece.size();
  }
  EXPECT_GE(received, 29 * kMebibyte);
  EXPECT_LE(received, 31 * kMebibyte);
}

TEST(SnapshotSpace, UnknownSpaceStopsNothing) {
  virtual_disk::VirtualDisk disk;
  SnapshotSpace space(disk, "dir");
  EXPECT_TRUE(space.check(0, std::numeric_limits<int64_t>::max()));
}

}  // namespace
}  // namespace server
