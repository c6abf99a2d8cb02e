// SPDX-License-Identifier: MIT
#include "persistence/files/lock_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/descriptor.h"
#include "persistence/files/open_file.h"
#include "tests/support/temp_directory.h"

namespace persistence {
namespace {

using ::testing::HasSubstr;

TEST(LockFileTest, LockLastsUntilItsDescriptorIsClosed) {
  const support::TempDirectory directory;
  const std::string path = directory.path() + "/" + kLockFileName;
  const auto open = [&path] { return *open_file(path, O_RDWR | O_CREAT); };
  const core::Descriptor other = open();
  {
    const core::Descriptor holder = open();
    EXPECT_TRUE(*try_lock(holder.get(), path));
    EXPECT_FALSE(*try_lock(other.get(), path));
  }
  EXPECT_TRUE(*try_lock(other.get(), path));
}

TEST(LockFileTest, OtherFailuresDoNotCountAsLocked) {
  const auto locked = try_lock(-1, "d/.bloomery.lock");
  ASSERT_FALSE(locked);
  EXPECT_THAT(locked.error().message, HasSubstr("can't lock"));
}

}  // namespace
}  // namespace persistence
