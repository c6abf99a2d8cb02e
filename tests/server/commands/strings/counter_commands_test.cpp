// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/keyspace_access.h"

namespace server {
namespace {

using CounterCommandsTest = CommandTest;

const ::testing::Matcher<const std::string&> kOverflow = is_error("ERR", "increment or decrement");

TEST_F(CounterCommandsTest, CountersStartAtZero) {
  EXPECT_EQ(run({"INCR", "a"}), integer(1));
  EXPECT_EQ(run({"DECR", "b"}), integer(-1));
  EXPECT_EQ(run({"INCRBY", "a", "-11"}), integer(-10));
  EXPECT_EQ(run({"DECRBY", "a", "-20"}), integer(10));
  EXPECT_EQ(run({"GET", "a"}), bulk("10"));
}

TEST_F(CounterCommandsTest, CountingKeepsTheExpiry) {
  run({"SETEX", "a", "5", "1"});
  run({"INCR", "a"});
  run({"INCRBYFLOAT", "a", "0.5"});
  EXPECT_EQ(keyspace_.expires_count(0), 1U);
}

TEST_F(CounterCommandsTest, OverflowIsRefusedAndChangesNothing) {
  run({"SET", "max", "9223372036854775807"});
  run({"SET", "min", "-9223372036854775808"});
  EXPECT_THAT(run({"INCR", "max"}), kOverflow);
  EXPECT_THAT(run({"DECR", "min"}), kOverflow);
  EXPECT_THAT(run({"INCRBY", "min", "-1"}), kOverflow);
  EXPECT_THAT(run({"DECRBY", "max", "-9223372036854775808"}), is_error("ERR", "decrement"));
  EXPECT_EQ(run({"GET", "max"}), bulk("9223372036854775807"));
}

TEST_F(CounterCommandsTest, OnlyCanonicalIntegersCount) {
  for (const char* text : {"", " 1", "01", "+1", "1.0", "abc", "9223372036854775808"}) {
    run({"SET", "a", text});
    EXPECT_EQ(run({"INCR", "a"}), error(kNotAnInteger)) << text;
    EXPECT_EQ(run({"INCRBY", "b", text}), error(kNotAnInteger)) << text;
  }
  put_filter(keyspace_, "f");
  EXPECT_EQ(run({"INCR", "f"}), error(kWrongType));
}

TEST_F(CounterCommandsTest, IncrbyfloatWritesFractionsWithoutExponents) {
  EXPECT_EQ(run({"INCRBYFLOAT", "a", "10.50"}), bulk("10.5"));
  EXPECT_EQ(run({"INCRBYFLOAT", "a", "0.1"}), bulk("10.6"));
  EXPECT_EQ(run({"INCRBYFLOAT", "a", "5.0e3"}), bulk("5010.60000000000000009"));
  EXPECT_EQ(run({"INCRBYFLOAT", "b", "3"}), bulk("3"));
  const auto* entry = keyspace_.find_any(0, keyspace_.ref("b"));
  EXPECT_EQ(entry->encoding(), "embstr");
}

TEST_F(CounterCommandsTest, IncrbyfloatRefusesWhatIsNoNumber) {
  put_filter(keyspace_, "f");
  EXPECT_EQ(run({"INCRBYFLOAT", "f", "x"}), error(kWrongType));
  EXPECT_EQ(run({"INCRBYFLOAT", "a", "x"}), error(kNotAFloat));
  EXPECT_EQ(run({"INCRBYFLOAT", "a", "nan"}), error(kNotAFloat));
  EXPECT_THAT(run({"INCRBYFLOAT", "a", "inf"}), is_error("ERR", "NaN"));
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

}  // namespace
}  // namespace server
