// SPDX-License-Identifier: MIT
#include "persistence/files/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "persistence/files/open_file.h"

namespace persistence {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kLimitBytes = 1 << 20;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_file_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  size_t entry_count() const {
    const std::filesystem::directory_iterator entries(directory_);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  std::string directory_;
};

TEST_F(FileTest, WrittenBytesAreReadBack) {
  std::string bytes("zero\0and\r\n\xff", 11);
  for (int i = 0; i < 15; ++i) bytes += bytes;
  ASSERT_TRUE(write_file_atomically(path("a"), bytes));
  EXPECT_EQ(read_whole_file(path("a"), bytes.size()).value(), bytes);
  EXPECT_EQ(entry_count(), 1U);
}

TEST_F(FileTest, EmptyFileIsWrittenAndRead) {
  ASSERT_TRUE(write_file_atomically(path("a"), ""));
  EXPECT_EQ(read_whole_file(path("a"), 0).value(), "");
}

TEST_F(FileTest, RelativePathWithoutDirectoryWorks) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  const auto written = write_file_atomically("plain", "x");
  std::filesystem::current_path(before);
  ASSERT_TRUE(written);
  EXPECT_EQ(read_whole_file(path("plain"), kLimitBytes).value(), "x");
}

TEST_F(FileTest, FilesAreAccessibleToTheOwnerOnly) {
  const auto mode = [this] {
    struct stat status {};
    EXPECT_EQ(::stat(path("a").c_str(), &status), 0);
    return status.st_mode & 07777;
  };
  ASSERT_TRUE(write_file_atomically(path("a"), "old"));
  EXPECT_EQ(mode(), 0600U);
  for (const auto& [before, after] : {std::pair{0600U, 0600U}, {0400U, 0400U}, {0664U, 0600U}}) {
    ASSERT_EQ(::chmod(path("a").c_str(), before), 0);
    ASSERT_TRUE(write_file_atomically(path("a"), "new"));
    EXPECT_EQ(mode(), after);
    EXPECT_EQ(read_whole_file(path("a"), kLimitBytes).value(), "new");
  }
}

TEST_F(FileTest, FileOverTheLimitIsRejected) {
  ASSERT_TRUE(write_file_atomically(path("a"), "12345"));
  EXPECT_TRUE(read_whole_file(path("a"), 5));
  EXPECT_THAT(read_whole_file(path("a"), 4).error().message, HasSubstr("larger than 4 bytes"));
}

TEST_F(FileTest, MissingFileAndDirectoryAreErrors) {
  EXPECT_EQ(read_whole_file(path("none"), 1).error().message,
            "ERR can't open '" + path("none") + "': No such file or directory");
  EXPECT_THAT(read_whole_file(directory_, 1).error().message, HasSubstr("it is a directory"));
  EXPECT_THAT(write_file_atomically(path("no/such"), "x").error().message,
              StartsWith("ERR can't create"));
}

TEST_F(FileTest, FilesOfKilledWritersAreRemoved) {
  const std::vector<std::string> others = {"a.tmp-", "a.tmp-1", "a.tmp-1-x", "b.tmp-1-2", "aa"};
  for (const std::string& name : others) std::ofstream(path(name)) << "kept";
  std::ofstream(path("a.tmp-1-2")) << "secret";
  std::ofstream(path("a.tmp-" + std::to_string(::getpid()) + "-99")) << "secret";
  ASSERT_TRUE(write_file_atomically(path("a"), "new"));
  EXPECT_EQ(entry_count(), others.size() + 1);
  for (const std::string& name : others) EXPECT_TRUE(std::filesystem::exists(path(name))) << name;
}

TEST_F(FileTest, FilesOfRunningWritersAreKept) {
  std::ofstream(path("a.tmp-1-2")) << "part";
  {
    const auto writer = open_file(path("a.tmp-1-2"), O_RDONLY);
    ASSERT_EQ(::flock(writer->get(), LOCK_EX | LOCK_NB), 0);
    ASSERT_TRUE(write_file_atomically(path("a"), "new"));
    EXPECT_TRUE(std::filesystem::exists(path("a.tmp-1-2")));
  }
  ASSERT_TRUE(write_file_atomically(path("a"), "new"));
  EXPECT_EQ(entry_count(), 1U);
}

TEST_F(FileTest, FailedRenameLeavesNoTemporaryFile) {
  std::filesystem::create_directory(path("taken"));
  EXPECT_THAT(write_file_atomically(path("taken"), "x").error().message,
              StartsWith("ERR can't replace"));
  EXPECT_EQ(entry_count(), 1U);
}

TEST_F(FileTest, PipeIsNotReplaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(write_file_atomically(path("pipe"), "x").error().message,
              HasSubstr("not a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
  EXPECT_EQ(entry_count(), 1U);
}

TEST_F(FileTest, FailedWriteKeepsTheOldFile) {
  ASSERT_TRUE(write_file_atomically(path("a"), "old"));
  // With a limit on the file size, write() first writes fewer bytes than requested, and then fails.
  // A full disk has the same effect.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_file_atomically(path("a"), std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("File too large"));
  EXPECT_EQ(read_whole_file(path("a"), kLimitBytes).value(), "old");
  EXPECT_EQ(entry_count(), 1U);
}

TEST_F(FileTest, PipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "abc", 3), 3);
  ::close(ends[1]);
  EXPECT_EQ(read_descriptor(ends[0], "pipe", kLimitBytes).value(), "abc");
  ::close(ends[0]);
}

}  // namespace
}  // namespace persistence
