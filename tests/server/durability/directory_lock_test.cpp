// SPDX-License-Identifier: MIT
#include "server/durability/directory_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/support/waiting.h"

namespace server {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kAtOnce{0};

// The tests run in a temporary working directory.
class DirectoryLockTest : public ::testing::Test {
 protected:
  DirectoryLockTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_lock_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(root_ / "first");
    std::filesystem::create_directory(root_ / "second");
    std::filesystem::current_path(root_ / "first");
  }
  ~DirectoryLockTest() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(root_);
  }
  // Returns the error that another server gets when it locks this directory.
  std::string error_in(const std::string& name) const {
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(root_ / name);
    DirectoryLock other;
    const auto taken = other.take(kAtOnce);
    std::filesystem::current_path(here);
    return taken ? "" : taken.error().message;
  }

  const std::filesystem::path before_ = std::filesystem::current_path();
  std::filesystem::path root_;
};

TEST_F(DirectoryLockTest, KeepsASecondServerOut) {
  DirectoryLock lock;
  ASSERT_TRUE(lock.take(kAtOnce));
  EXPECT_THAT(error_in("first"), HasSubstr("Another process uses the data directory"));
  EXPECT_THAT(error_in("first"), HasSubstr((root_ / "first").string()));
  EXPECT_EQ(error_in("second"), "");
}

TEST_F(DirectoryLockTest, EndsWithItsOwnerAndLeavesAnEmptyFile) {
  {
    DirectoryLock lock;
    ASSERT_TRUE(lock.take(kAtOnce));
  }
  EXPECT_EQ(error_in("first"), "");
  EXPECT_EQ(std::filesystem::file_size(".bloomery.lock"), 0U);
}

// If a server is killed right after a fork, its child process has not closed the lock file yet. So
// the lock is held until the child process ends.
TEST_F(DirectoryLockTest, WaitsForTheChildOfAnEndedOwner) {
  auto owner = std::make_unique<DirectoryLock>();
  ASSERT_TRUE(owner->take(kAtOnce));
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[1]);
    char end = 0;
    (void)!::read(pipe[0], &end, 1);
    support::let_time_pass(std::chrono::milliseconds(50), "another process begins to wait");
    ::_exit(0);
  }
  owner.reset();
  DirectoryLock next;
  EXPECT_FALSE(next.take(kAtOnce)) << "the child holds it";
  ::close(pipe[1]);
  const auto taken = next.take(std::chrono::milliseconds(60'000));
  EXPECT_TRUE(taken) << taken.error().message;
  ::close(pipe[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(DirectoryLockTest, TheFileIsItsOwnersAlone) {
  DirectoryLock lock;
  ASSERT_TRUE(lock.take(kAtOnce));
  struct stat status {};
  ASSERT_EQ(::stat(".bloomery.lock", &status), 0);
  EXPECT_EQ(status.st_mode & 0077, 0U);
}

TEST_F(DirectoryLockTest, MovesToAnotherDirectory) {
  DirectoryLock lock;
  ASSERT_TRUE(lock.take(kAtOnce));
  ASSERT_TRUE(lock.move_to("../second"));
  EXPECT_EQ(std::filesystem::current_path().filename(), "second");
  EXPECT_EQ(error_in("first"), "") << "it is free again";
  EXPECT_NE(error_in("second"), "");
}

TEST_F(DirectoryLockTest, MovingToTheSameDirectoryChangesNothing) {
  DirectoryLock lock;
  ASSERT_TRUE(lock.take(kAtOnce));
  EXPECT_TRUE(lock.move_to("../first"));
  EXPECT_NE(error_in("first"), "");
}

TEST_F(DirectoryLockTest, ADirectoryThatIsTakenIsNotMovedTo) {
  DirectoryLock lock;
  ASSERT_TRUE(lock.take(kAtOnce));
  std::filesystem::current_path(root_ / "second");
  auto other = std::make_unique<DirectoryLock>();
  ASSERT_TRUE(other->take(kAtOnce));
  std::filesystem::current_path(root_ / "first");
  const auto moved = lock.move_to("../second");
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr((root_ / "second").string()));
  EXPECT_EQ(std::filesystem::current_path().filename(), "first");
  EXPECT_NE(error_in("first"), "") << "this one is kept";
}

TEST_F(DirectoryLockTest, ADirectoryThatIsNotThereIsAnError) {
  DirectoryLock lock;
  ASSERT_TRUE(lock.take(kAtOnce));
  EXPECT_FALSE(lock.move_to("../third"));
  EXPECT_EQ(std::filesystem::current_path().filename(), "first");
}

// A user with write access to the directory can replace the lock file by a symbolic link. The
// server must not open the target of the link.
TEST_F(DirectoryLockTest, ALinkInItsPlaceIsNotFollowed) {
  std::ofstream("target") << "kept";
  std::filesystem::create_symlink("target", ".bloomery.lock");
  DirectoryLock lock;
  const auto taken = lock.take(kAtOnce);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("Can't lock the data directory"));
  EXPECT_EQ(std::filesystem::file_size("target"), 4U);
}

}  // namespace
}  // namespace server
