// SPDX-License-Identifier: MIT
#include "tests/support/command_test.h"
#include "tests/support/keyspace_access.h"

namespace server {
namespace {

using MultiStringCommandsTest = CommandTest;

TEST_F(MultiStringCommandsTest, MgetAnswersNullForWhatIsNoString) {
  put_filter(keyspace_, "f");
  EXPECT_EQ(run({"MSET", "a", "1", "b", "two"}), kOk);
  EXPECT_EQ(run({"MGET", "a", "none", "f", "b", "a"}),
            array({bulk("1"), kNull, kNull, bulk("two"), bulk("1")}));
}

TEST_F(MultiStringCommandsTest, MsetTakesPairsOnly) {
  EXPECT_EQ(run({"MSET", "a", "1", "b"}),
            error("ERR wrong number of arguments for 'mset' command"));
  EXPECT_EQ(run({"MSETNX", "a", "1", "b"}),
            error("ERR wrong number of arguments for 'msetnx' command"));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(MultiStringCommandsTest, MsetClearsExpiriesAndItsLastValueCounts) {
  run({"SETEX", "a", "5", "1"});
  EXPECT_EQ(run({"MSET", "a", "2", "a", "3"}), kOk);
  EXPECT_EQ(run({"GET", "a"}), bulk("3"));
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(MultiStringCommandsTest, MsetnxStoresAllOrNothing) {
  EXPECT_EQ(run({"MSETNX", "a", "1", "b", "2"}), integer(1));
  EXPECT_EQ(run({"MSETNX", "c", "1", "b", "3"}), integer(0));
  EXPECT_EQ(run({"MGET", "a", "b", "c"}), array({bulk("1"), bulk("2"), kNull}));
}

TEST_F(MultiStringCommandsTest, MsetnxSeesNoExpiredKey) {
  run({"PSETEX", "a", "5", "1"});
  advance_ms(6);
  EXPECT_EQ(run({"MSETNX", "a", "2"}), integer(1));
}

TEST_F(MultiStringCommandsTest, BigValuesArriveWhole) {
  const std::string big(100'000, 'b');
  EXPECT_EQ(run({"MSET", "a", big, "b", "s"}), kOk);
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk(big), bulk("s")}));
}

}  // namespace
}  // namespace server
