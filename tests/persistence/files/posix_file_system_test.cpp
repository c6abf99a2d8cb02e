// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "persistence/files/file_system.h"

namespace persistence {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PosixFilesTest : public ::testing::Test {
 protected:
  PosixFilesTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_posix_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~PosixFilesTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write(const std::string& name, std::string_view bytes, OpenMode mode = OpenMode::kCreate) {
    auto file = files_.open_append(path(name), mode);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->write(bytes));
    ASSERT_TRUE((*file)->sync());
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string directory_;
  FileSystem& files_ = posix_file_system();
};

TEST_F(PosixFilesTest, AppendedBytesAreRead) {
  write("a", "one");
  write("a", "two", OpenMode::kAppend);
  auto file = files_.open_input(path("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->size_bytes(), 6U);
  std::array<char, 4> room{};
  EXPECT_EQ((*file)->read(room).value(), 4U);
  EXPECT_EQ(std::string(room.data(), 4), "onet");
  EXPECT_EQ((*file)->read(room).value(), 2U);
  EXPECT_EQ((*file)->read(room).value(), 0U) << "the file has ended";
}

TEST_F(PosixFilesTest, CreatingReplacesAnExistingFile) {
  write("a", "old");
  write("a", "n");
  EXPECT_EQ(content("a"), "n");
  EXPECT_EQ(files_.size_bytes(path("a")).value(), 1U);
}

TEST_F(PosixFilesTest, TruncatedFileContinuesAtItsNewEnd) {
  auto file = files_.open_append(path("a"), OpenMode::kCreate);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write("sound torn"));
  ASSERT_TRUE((*file)->truncate(6));
  ASSERT_TRUE((*file)->write("again"));
  EXPECT_EQ(content("a"), "sound again");
}

TEST_F(PosixFilesTest, MissingFileIsAnErrorWithItsName) {
  const auto file = files_.open_input(path("absent"));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("absent"));
  EXPECT_FALSE(files_.size_bytes(path("absent")));
  EXPECT_FALSE(files_.exists(path("absent")));
  EXPECT_FALSE(files_.rename(path("absent"), path("b")));
  EXPECT_FALSE(files_.open_append(path("none/a"), OpenMode::kCreate));
}

TEST_F(PosixFilesTest, FileThatCannotBeLookedAtCountsAsExisting) {
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_TRUE(files_.exists(path("loop")));
  EXPECT_FALSE(files_.open_input(path("loop")));
  write("file", "");
  EXPECT_FALSE(files_.exists(path("file/below")));
}

TEST_F(PosixFilesTest, RenamedFileReplacesTheOld) {
  write("new", "new");
  write("old", "old");
  ASSERT_TRUE(files_.rename(path("new"), path("old")));
  EXPECT_EQ(content("old"), "new");
  EXPECT_FALSE(files_.exists(path("new")));
}

TEST_F(PosixFilesTest, RenameToAnotherFileSystemIsExplained) {
  struct stat here {};
  struct stat shared_memory {};
  ASSERT_EQ(::stat(directory_.c_str(), &here), 0);
  if (::stat("/dev/shm", &shared_memory) != 0 || shared_memory.st_dev == here.st_dev) {
    GTEST_SKIP() << "/dev/shm is not a file system of its own";
  }
  write("a", "bytes");
  const auto moved = files_.rename(path("a"), "/dev/shm/bloomery_posix_absent");
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("on one file system"));
  EXPECT_EQ(content("a"), "bytes");
}

TEST_F(PosixFilesTest, LinkAddsANameButReplacesNone) {
  write("a", "bytes");
  ASSERT_TRUE(files_.link(path("a"), path("b")));
  EXPECT_EQ(content("b"), "bytes");
  EXPECT_FALSE(files_.link(path("a"), path("b"))) << "the name exists";
  ASSERT_TRUE(files_.remove(path("a")));
  EXPECT_EQ(content("b"), "bytes");
}

TEST_F(PosixFilesTest, RemovingAMissingFileIsNoError) {
  EXPECT_TRUE(files_.remove(path("absent")));
}

TEST_F(PosixFilesTest, NamesAreListedInOrder) {
  write("b", "");
  write("a", "");
  write(".hidden", "");
  ASSERT_TRUE(files_.make_directory(path("c")));
  EXPECT_THAT(files_.list(directory_).value(), ElementsAre(".hidden", "a", "b", "c"));
}

TEST_F(PosixFilesTest, MissingDirectoryIsListedAsEmpty) {
  EXPECT_THAT(files_.list(path("none")).value(), IsEmpty());
}

TEST_F(PosixFilesTest, CreatingADirectoryTwiceIsNoError) {
  EXPECT_TRUE(files_.make_directory(path("d")));
  EXPECT_TRUE(files_.make_directory(path("d")));
  EXPECT_TRUE(files_.sync_directory(path("d")));
}

TEST_F(PosixFilesTest, FileInPlaceOfADirectoryIsReported) {
  ASSERT_TRUE(files_.open_append(path("d"), OpenMode::kCreate));
  const auto made = files_.make_directory(path("d"));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("create directory"));
  EXPECT_THAT(made.error().message, HasSubstr("File exists"));
}

TEST_F(PosixFilesTest, MissingDirectoryCannotBeSynced) {
  EXPECT_FALSE(files_.sync_directory(path("none")));
}

}  // namespace
}  // namespace persistence
