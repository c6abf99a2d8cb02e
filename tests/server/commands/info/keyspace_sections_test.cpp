// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using KeyspaceSectionsTest = CommandTest;

TEST_F(KeyspaceSectionsTest, DatabasesWithKeysAreListed) {
  EXPECT_THAT(run({"INFO", "keyspace"}), Not(HasSubstr("db0")));
  run({"SET", "a", "1"});
  run({"SET", "b", "1", "EX", "100"});
  run({"SELECT", "3"});
  run({"SET", "c", "1"});
  const std::string info = run({"INFO", "keyspace"});
  EXPECT_THAT(info, HasSubstr("db0:keys=2,expires=1,avg_ttl="));
  EXPECT_THAT(info, HasSubstr("db3:keys=1,expires=0,avg_ttl=0\r\n"));
  EXPECT_THAT(info, Not(HasSubstr("db1")));
}

TEST_F(KeyspaceSectionsTest, FiltersAreSummedUp) {
  run({"BF.RESERVE", "f", "0.01", "100"});
  run({"BF.RESERVE", "g", "0.01", "200"});
  run({"BF.ADD", "f", "x"});
  const std::string info = run({"INFO", "bf"});
  EXPECT_THAT(info, HasSubstr("bf_bloom_num_objects:2\r\n"));
  EXPECT_THAT(info, HasSubstr("bf_bloom_num_filters_across_objects:2\r\n"));
  EXPECT_THAT(info, HasSubstr("bf_bloom_num_items_across_objects:1\r\n"));
  EXPECT_THAT(info, HasSubstr("bf_bloom_defrag_hits:0\r\n"));
}

TEST_F(KeyspaceSectionsTest, BloomSectionIsShownByName) {
  run({"BF.RESERVE", "f", "0.01", "100"});
  run({"BF.RESERVE", "g", "0.01", "200"});
  const std::string named = run({"INFO", "bloom"});
  EXPECT_THAT(named, HasSubstr("# Bloom\r\nbloom_num_objects:2\r\n"));
  EXPECT_THAT(named, HasSubstr("\nbloom_total_memory_bytes:"));
  EXPECT_THAT(named, Not(HasSubstr("\nbloom_total_memory_bytes:0\r\n")));
  // INFO everything omits the section Bloom, because another section shows the same values.
  EXPECT_THAT(run({"INFO", "everything"}), Not(HasSubstr("# Bloom\r\n")));
}

}  // namespace
}  // namespace server
