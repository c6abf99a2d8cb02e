// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_times.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/aof_files.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using aof_files::encode;
using aof_files::kSet;

class AofTimesTest : public ::testing::Test {
 protected:
  AofTimes times(const std::string& bytes, uint64_t until_s) {
    disk_.put("file", bytes);
    const auto scan = scan_aof(disk_, "file");
    EXPECT_TRUE(scan);
    const auto found = read_aof_times(disk_, "file", *scan, until_s);
    EXPECT_TRUE(found);
    return found ? *found : AofTimes{};
  }

  virtual_disk::VirtualDisk disk_;
};

TEST_F(AofTimesTest, FileWithoutTimesHasNone) {
  const AofTimes found = times(kSet, 1);
  EXPECT_FALSE(found.first_s);
  EXPECT_FALSE(found.later_offset);
}

TEST_F(AofTimesTest, FirstLaterLineIsFound) {
  const std::string early = "#TS:100\r\n" + kSet + "#TS:200\r\n" + kSet;
  const std::string bytes = early + "#TS:201\r\n" + kSet + "#TS:300\r\n" + kSet;
  EXPECT_EQ(times(bytes, 200).first_s, 100U);
  EXPECT_EQ(times(bytes, 200).later_offset, early.size());
  EXPECT_EQ(times(bytes, 99).later_offset, 0U);
  EXPECT_FALSE(times(bytes, 300).later_offset);
}

TEST_F(AofTimesTest, TransactionIsNotDivided) {
  const std::string before = "#TS:100\r\n" + kSet;
  const std::string inside = encode({"multi"}) + kSet + "#TS:200\r\n" + kSet + encode({"exec"});
  EXPECT_EQ(times(before + inside, 150).later_offset, before.size());
  // The transaction is complete before the later timestamp line, so the cut is between EXEC and
  // that line.
  EXPECT_EQ(
      times(before + encode({"MULTI"}) + kSet + encode({"EXEC"}) + "#TS:200\r\n", 150).later_offset,
      before.size() + (encode({"MULTI"}) + kSet + encode({"EXEC"})).size());
}

TEST_F(AofTimesTest, TornEndIsNotRead) {
  EXPECT_FALSE(times("#TS:100\r\n" + kSet + "#TS:20", 150).later_offset);
}

TEST_F(AofTimesTest, AbsentFileIsAnError) {
  EXPECT_FALSE(read_aof_times(disk_, "absent", {}, 1));
}

}  // namespace
}  // namespace persistence
