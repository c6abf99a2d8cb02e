// SPDX-License-Identifier: MIT
#include "persistence/files/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
    // The fifth operation is the sync of the directory, which comes after the rename.
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

TEST(ReplaceFileTest, PowerCutLeavesTheOldOrTheNewBytes) {
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

TEST(VirtualDiskTest, FailedSyncIsNotRepairedByALaterOne) {
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

TEST(VirtualDiskTest, FullDiskStoresAsManyBytesAsFit) {
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

class PosixFileSystemTest : public ::testing::Test {
 protected:
  PosixFileSystemTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_files_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~PosixFileSystemTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  unsigned mode_of(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::lstat(path(name).c_str(), &status), 0) << name;
    return status.st_mode;
  }

  std::string directory_;
  FileSystem& files_ = posix_file_system();
};

TEST_F(PosixFileSystemTest, FilesAreAccessibleToTheOwnerOnly) {
  const mode_t before = ::umask(0);
  EXPECT_TRUE(files_.open_append(path("new"), OpenMode::kCreate));
  EXPECT_TRUE(files_.open_append(path("appended"), OpenMode::kAppend));
  ::umask(0277);
  EXPECT_TRUE(files_.open_append(path("strict"), OpenMode::kCreate));
  ::umask(before);
  EXPECT_EQ(mode_of("new") & 07777, 0600U);
  EXPECT_EQ(mode_of("appended") & 07777, 0600U);
  EXPECT_EQ(mode_of("strict") & 07777, 0400U);
}

// Another user with access to the directory has created a link at the name of the next temporary
// file.
TEST_F(PosixFileSystemTest, NewFileIsNotWrittenThroughALink) {
  ASSERT_TRUE(replace_file(files_, path("victim"), path("temp-victim"), "precious"));
  ASSERT_EQ(::symlink("victim", path("temp-a").c_str()), 0);
  ASSERT_EQ(::mkfifo(path("temp-b").c_str(), 0600), 0);
  EXPECT_TRUE(replace_file(files_, path("a"), path("temp-a"), "a"));
  EXPECT_TRUE(replace_file(files_, path("b"), path("temp-b"), "b"));
  auto victim = files_.open_input(path("victim"));
  ASSERT_TRUE(victim);
  char text[16] = {};
  EXPECT_EQ((*victim)->read(text).value(), 8U);
  EXPECT_STREQ(text, "precious");
  EXPECT_TRUE(S_ISREG(mode_of("a")));
  EXPECT_TRUE(S_ISREG(mode_of("b")));
}

TEST_F(PosixFileSystemTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  ASSERT_TRUE(files_.make_directory(path("directory")));
  const std::string names[] = {path("fifo"), path("directory"), "/dev/null", "/dev/zero"};
  for (const std::string& name : names) {
    EXPECT_FALSE(files_.open_input(name)) << name;
    EXPECT_FALSE(files_.open_append(name, OpenMode::kAppend)) << name;
  }
  EXPECT_FALSE(files_.open_append(path("directory"), OpenMode::kCreate));
}

TEST_F(PosixFileSystemTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", path("link"));
  for (const char* name : {"pipe", "link"}) {
    std::ofstream(path("new")) << "bytes";
    const auto refused = posix_file_system().rename(path("new"), path(name));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().message,
              "ERR can't replace '" + path(name) + "': it is not a regular file");
    EXPECT_TRUE(std::filesystem::is_fifo(path(name)));
    EXPECT_TRUE(std::filesystem::exists(path("new")));
    EXPECT_FALSE(posix_file_system().check_replaceable(path(name)));
  }
  std::filesystem::create_symlink("none", path("dangling"));
  for (const char* name : {"old", "dangling"}) {
    std::ofstream(path("new")) << "bytes";
    EXPECT_TRUE(posix_file_system().check_replaceable(path(name)));
    EXPECT_TRUE(posix_file_system().rename(path("new"), path(name))) << name;
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path(name))));
  }
}

TEST_F(PosixFileSystemTest, ReportsTheSpaceOfADevice) {
  const auto space = files_.space(directory_);
  ASSERT_TRUE(space);
  EXPECT_GT(space->total_bytes, 0U);
  EXPECT_LE(space->free_bytes, space->total_bytes);
  EXPECT_FALSE(files_.space(path("none")));
}

}  // namespace
}  // namespace persistence
