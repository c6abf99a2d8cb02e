// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_increment.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

class AofIncrementTest : public ::testing::Test {
 protected:
  AofIncrementTest() {
    append_aof_header(expected_, checksum_);
    disk_.restart_count();
  }
  AofIncrement created() {
    auto increment = AofIncrement::create(disk_, kPath);
    EXPECT_TRUE(increment);
    disk_.restart_count();
    return std::move(*increment);
  }
  // Expects that the last batch of the file is `commands` followed by their checksum line.
  void expect_batch(std::string commands) {
    end_aof_batch(commands, checksum_);
    expected_ += commands;
    EXPECT_EQ(disk_.content(kPath), expected_);
  }

  const std::string kPath = "./log.aof";
  VirtualDisk disk_;
  std::string expected_;
  RunningChecksum checksum_;
};

TEST_F(AofIncrementTest, HeaderIsSyncedBeforeTheFirstBatch) {
  const AofIncrement increment = created();
  EXPECT_EQ(disk_.content(kPath), expected_);
  EXPECT_EQ(increment.size_bytes(), expected_.size());
  ASSERT_TRUE(disk_.sync_directory("."));
  disk_.cut_power(Unsynced::kLost);
  EXPECT_EQ(disk_.content(kPath), expected_);
}

TEST_F(AofIncrementTest, EachBatchEndsInAChecksumLine) {
  AofIncrement increment = created();
  std::string batch = "first";
  ASSERT_TRUE(increment.write(batch));
  expect_batch("first");
  batch = "second";
  ASSERT_TRUE(increment.write(batch));
  expect_batch("second");
  EXPECT_EQ(increment.size_bytes(), expected_.size());
}

TEST_F(AofIncrementTest, FailedWriteIsTruncatedBeforeTheNextOne) {
  for (const bool fails_to_cut : {false, true}) {
    AofIncrement increment = created();
    std::string batch = "commands";
    if (fails_to_cut) {
      disk_.fail_from_operation(1);
    } else {
      disk_.fail_operation(1);
    }
    EXPECT_FALSE(increment.write(batch));
    EXPECT_EQ(batch, "commands");
    EXPECT_EQ(increment.size_bytes(), expected_.size());
    EXPECT_EQ(!increment.cut_back(), fails_to_cut);
    disk_.restart_count();
    ASSERT_TRUE(increment.cut_back());
    EXPECT_EQ(disk_.content(kPath), expected_);
    ASSERT_TRUE(increment.write(batch));
    const auto [bytes, checksum] = std::pair(expected_, checksum_);
    expect_batch("commands");
    expected_ = bytes;
    checksum_ = checksum;
  }
}

TEST_F(AofIncrementTest, ResumedFileGetsAChecksumLine) {
  { const AofIncrement first = created(); }
  auto file = disk_.open_append(kPath, OpenMode::kAppend);
  ASSERT_TRUE(file);
  auto resumed = AofIncrement::resume(std::move(*file), expected_.size(), checksum_);
  ASSERT_TRUE(resumed);
  expect_batch("");
  EXPECT_EQ(resumed->size_bytes(), expected_.size());
  ASSERT_TRUE(disk_.sync_directory("."));
  disk_.cut_power(Unsynced::kLost);
  EXPECT_EQ(disk_.content(kPath), expected_);
}

TEST_F(AofIncrementTest, DiskFaultsAreReturned) {
  for (const uint64_t number : {1, 2, 3}) {
    disk_.restart_count();
    disk_.fail_operation(number);
    EXPECT_FALSE(AofIncrement::create(disk_, kPath)) << number;
  }
}

}  // namespace
}  // namespace persistence
