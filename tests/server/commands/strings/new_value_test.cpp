// SPDX-License-Identifier: MIT
//
// Tests small and big values that commands store with NewValue, under old and new keys.
#include "server/commands/strings/new_value.h"

#include <gtest/gtest.h>

#include <string>

#include "core/keyspace/keyspace.h"
#include "server/base/process/memory_monitor.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

class NewValueTest : public KeyTest {
 protected:
  // SET copies a value of 64 KiB or more before it locks the key. `big_` is the smallest such
  // value.
  const std::string small_ = std::string((64 << 10) - 1, 's');
  const std::string big_ = std::string(64 << 10, 'b');
};

TEST_F(NewValueTest, ANewKeyTakesAnySize) {
  for (const std::string& value : {std::string(), std::string("1"), small_, big_}) {
    run({"DEL", "k"});
    EXPECT_EQ(run({"SET", "k", value}), kOk);
    EXPECT_EQ(text_of("k"), value);
  }
}

TEST_F(NewValueTest, AnOldKeyIsReplacedByAnySize) {
  for (const std::string& before : {std::string("12"), small_, big_}) {
    for (const std::string& after : {std::string(), std::string("7"), small_ + "x", big_ + "x"}) {
      run({"SET", "k", before});
      EXPECT_EQ(run({"SET", "k", after}), kOk);
      EXPECT_EQ(text_of("k"), after);
      EXPECT_EQ(keyspace_.db_size(0), 1U);
    }
  }
}

TEST_F(NewValueTest, AFilterIsReplacedByAString) {
  put_filter("k", "item");
  EXPECT_EQ(run({"SET", "k", big_}), kOk);
  EXPECT_EQ(text_of("k"), big_);
  EXPECT_EQ(run({"TYPE", "k"}), "+string\r\n");
}

TEST_F(NewValueTest, AHeavyValueKeepsExpiryAndIdleTimeOfItsKey) {
  run({"SET", "k", std::string(4 << 20, 'h'), "PX", "100000"});
  EXPECT_EQ(run({"SET", "k", "light", "KEEPTTL"}), kOk);
  EXPECT_EQ(run({"PTTL", "k"}), integer(100'000));
  EXPECT_EQ(text_of("k"), "light");
}

TEST_F(NewValueTest, TheCopyIsNotTheArgument) {
  std::string argument = big_;
  EXPECT_EQ(run({"SET", "k", argument}), kOk);
  argument.assign(argument.size(), 'x');
  EXPECT_EQ(text_of("k"), big_);
}

TEST_F(NewValueTest, WithoutMemoryNothingChanges) {
  run({"SET", "k", "before"});
  memory_.set_limit(memory_.refresh() + (1 << 20));
  EXPECT_EQ(run({"SET", "k", std::string(8 << 20, 'x')}).substr(0, 4), "-OOM");
  EXPECT_EQ(run({"SET", "new", std::string(8 << 20, 'x')}).substr(0, 4), "-OOM");
  memory_.set_limit(0);
  EXPECT_EQ(text_of("k"), "before");
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

}  // namespace
}  // namespace server
