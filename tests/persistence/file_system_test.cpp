// SPDX-License-Identifier: MIT
#include "persistence/file_system.h"

#include <gtest/gtest.h>

#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

core::Result<> replace(VirtualDisk& disk) {
  return replace_file(disk, "dir/file", "dir/temp-file", "new bytes");
}

TEST(ReplaceFileTest, EachFailureLeavesTheOldOrTheNewBytes) {
  for (uint64_t number = 1;; ++number) {
    VirtualDisk disk;
    disk.put("dir/file", "old");
    disk.fail_operation(number);
    const bool done = bool(replace(disk));
    // The sync of the directory comes after the rename.
    if (!done && number < 5) {
      EXPECT_EQ(disk.content("dir/file"), "old") << number;
    } else {
      EXPECT_EQ(disk.content("dir/file"), "new bytes") << number;
    }
    EXPECT_FALSE(disk.exists("dir/temp-file"));
    if (done) {
      EXPECT_EQ(number, 6U) << "open, write, sync, rename, sync of the directory";
      break;
    }
  }
}

TEST(ReplaceFileTest, PowerCutAtEachOperationLeavesTheOldOrTheNewBytes) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    VirtualDisk disk(seed);
    disk.put("dir/file", "old");
    disk.fail_from_operation(1 + seed % 7);
    const bool done = bool(replace(disk));
    disk.cut_power(static_cast<Unsynced>(seed % 3));
    const std::string bytes = disk.content("dir/file").value_or("none");
    EXPECT_TRUE(bytes == "new bytes" || (!done && bytes == "old")) << seed << ": " << bytes;
  }
}

TEST(VirtualDiskTest, UnsyncedBytesAndNamesAreLost) {
  VirtualDisk disk;
  disk.add_directory("dir");
  auto file = disk.open_append("dir/a", OpenMode::kCreate).value();
  ASSERT_TRUE(disk.sync_directory("dir"));
  ASSERT_TRUE(file->write("synced"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->write(" not"));
  ASSERT_TRUE(disk.rename("dir/a", "dir/b"));
  EXPECT_EQ(disk.content("dir/b"), "synced not");
  disk.cut_power(Unsynced::kLost);
  EXPECT_EQ(disk.content("dir/a"), "synced");
  EXPECT_FALSE(disk.exists("dir/b"));
  EXPECT_FALSE(file->write("late")) << "the process is dead";
}

TEST(VirtualDiskTest, FailedSyncIsNotMadeGood) {
  VirtualDisk disk;
  disk.add_directory("dir");
  auto file = disk.open_append("dir/a", OpenMode::kCreate).value();
  ASSERT_TRUE(disk.sync_directory("dir"));
  ASSERT_TRUE(file->write("ab"));
  disk.fail_operation(disk.operation_count() + 1);
  EXPECT_FALSE(file->sync());
  ASSERT_TRUE(file->write("cd"));
  EXPECT_TRUE(file->sync());
  disk.cut_power(Unsynced::kLost);
  EXPECT_EQ(disk.content("dir/a"), std::string("\0\0cd", 4));
}

TEST(VirtualDiskTest, FullDiskTakesWhatFits) {
  VirtualDisk disk;
  disk.set_free_bytes(3);
  auto file = disk.open_append("a", OpenMode::kCreate).value();
  EXPECT_EQ(file->write("abcdef").error().message, "ERR can't write 'a': No space left on device");
  EXPECT_EQ(disk.content("a"), "abc");
  ASSERT_TRUE(file->truncate(0));
  disk.set_free_bytes(6);
  EXPECT_TRUE(file->write("abcdef"));
  EXPECT_EQ(disk.content("a"), "abcdef");
}

}  // namespace
}  // namespace persistence
