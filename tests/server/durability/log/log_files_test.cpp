// SPDX-License-Identifier: MIT
#include "server/durability/log/log_files.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/manual_clock.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

class LogFilesTest : public ::testing::Test {
 protected:
  LogFilesTest() { journal_.set_active(true); }
  void open() {
    auto start = files_.directory().find();
    ASSERT_TRUE(start);
    ASSERT_TRUE(files_.open_without_base(std::move(start->manifest)));
  }
  std::string new_base() {
    EXPECT_TRUE(persistence::write_rdb_file(disk_, "base", keyspace_, {}));
    return "base";
  }

  Config config_;
  ManualClock clock_;
  persistence::Journal journal_;
  core::keyspace::Keyspace keyspace_{1, 1};
  virtual_disk::VirtualDisk disk_;
  LogFiles files_{config_, clock_, journal_, disk_};
};

TEST_F(LogFilesTest, ALogIsWholeWhenItHasItsBase) {
  EXPECT_FALSE(files_.needs_new_base());
  open();
  EXPECT_TRUE(files_.needs_new_base());
  ASSERT_TRUE(files_.replace_base(new_base(), persistence::AofBaseFormat::kRdb));
  EXPECT_FALSE(files_.needs_new_base());
}

TEST_F(LogFilesTest, ABaseMayBeReplacedWithoutALog) {
  ASSERT_TRUE(files_.directory().find());
  ASSERT_TRUE(files_.replace_base(new_base(), persistence::AofBaseFormat::kRdb));
  EXPECT_FALSE(files_.writer().is_open());
  const auto start = files_.directory().find();
  ASSERT_TRUE(start);
  EXPECT_EQ(start->files.size(), 1U);
}

TEST_F(LogFilesTest, FilesOfDataGivenUpAreStaleUntilANewBase) {
  files_.set_stale(true);
  open();
  journal_.append(0, std::array<std::string_view, 3>{"SET", "key", "value"});
  ASSERT_TRUE(files_.writer().write());
  (void)files_.writer().sync();
  EXPECT_TRUE(files_.writer().has_lost_sync()) << "no sync is believed";
  ASSERT_TRUE(files_.replace_base(new_base(), persistence::AofBaseFormat::kRdb));
  EXPECT_FALSE(files_.are_stale());
  EXPECT_FALSE(files_.needs_new_base());
}

}  // namespace
}  // namespace server
