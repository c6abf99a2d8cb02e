// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <random>

#include "core/keyspace/keyspace.h"
#include "server/base/process/memory_monitor.h"
#include "server/dispatch/admission.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/keyspace_access.h"

namespace server {
namespace {

class SubstringCommandsTest : public CommandTest {
 protected:
  std::string encoding_of(std::string_view name) {
    return std::string(keyspace_.find_any(0, keyspace_.ref(name))->encoding());
  }
};

TEST_F(SubstringCommandsTest, AppendMakesAKeyAsSetDoes) {
  EXPECT_EQ(run({"APPEND", "a", "12"}), integer(2));
  EXPECT_EQ(encoding_of("a"), "int");
  EXPECT_EQ(run({"APPEND", "a", "3"}), integer(3));
  EXPECT_EQ(encoding_of("a"), "raw");
  EXPECT_EQ(run({"GET", "a"}), bulk("123"));
  EXPECT_EQ(run({"INCR", "a"}), integer(124));
}

TEST_F(SubstringCommandsTest, AppendKeepsTheExpiry) {
  run({"SETEX", "a", "5", "x"});
  run({"APPEND", "a", "y"});
  EXPECT_EQ(keyspace_.expires_count(0), 1U);
}

TEST_F(SubstringCommandsTest, StrlenCountsBytes) {
  EXPECT_EQ(run({"STRLEN", "a"}), integer(0));
  run({"SET", "a", "-1234"});
  EXPECT_EQ(run({"STRLEN", "a"}), integer(5));
}

TEST_F(SubstringCommandsTest, GetrangeCountsFromBothEnds) {
  run({"SET", "a", "hello"});
  EXPECT_EQ(run({"GETRANGE", "a", "0", "-1"}), bulk("hello"));
  EXPECT_EQ(run({"GETRANGE", "a", "-3", "-2"}), bulk("ll"));
  EXPECT_EQ(run({"GETRANGE", "a", "-2", "-3"}), bulk(""));
  EXPECT_EQ(run({"GETRANGE", "a", "-100", "-99"}), bulk("h"));
  EXPECT_EQ(run({"GETRANGE", "a", "3", "100"}), bulk("lo"));
  EXPECT_EQ(run({"GETRANGE", "a", "5", "9"}), bulk(""));
  EXPECT_EQ(run({"SUBSTR", "a", "-9223372036854775808", "9223372036854775807"}), bulk("hello"));
  EXPECT_EQ(run({"GETRANGE", "none", "0", "-1"}), bulk(""));
  EXPECT_EQ(run({"GETRANGE", "a", "x", "1"}), error(kNotAnInteger));
}

TEST_F(SubstringCommandsTest, SetrangeFillsTheGapWithZeros) {
  EXPECT_EQ(run({"SETRANGE", "a", "3", "xy"}), integer(5));
  EXPECT_EQ(run({"GET", "a"}), bulk(std::string("\0\0\0xy", 5)));
  EXPECT_EQ(run({"SETRANGE", "a", "0", "abc"}), integer(5));
  EXPECT_EQ(run({"GET", "a"}), bulk("abcxy"));
  EXPECT_EQ(encoding_of("a"), "raw");
}

TEST_F(SubstringCommandsTest, SetrangeOfNothingChangesNothing) {
  EXPECT_EQ(run({"SETRANGE", "a", "9223372036854775807", ""}), integer(0));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
  run({"SET", "a", "12"});
  EXPECT_EQ(run({"SETRANGE", "a", "100", ""}), integer(2));
  EXPECT_EQ(encoding_of("a"), "int");
}

TEST_F(SubstringCommandsTest, StringsBeyondTheSizeLimitAreRefused) {
  const std::string refusal = error(kStringTooLong);
  EXPECT_EQ(run({"SETRANGE", "a", "9223372036854775807", "x"}), refusal);
  EXPECT_EQ(run({"SETRANGE", "a", "536870912", "x"}), refusal);
  EXPECT_THAT(run({"SETRANGE", "a", "-1", "x"}), is_error("ERR", "offset"));
  EXPECT_EQ(run({"SETRANGE", "a", "9223372036854775808", "x"}), error(kNotAnInteger));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
  run({"SETRANGE", "a", "536870911", "x"});
  EXPECT_EQ(run({"APPEND", "a", "x"}), refusal);
  EXPECT_EQ(run({"STRLEN", "a"}), integer(536'870'912));
}

TEST_F(SubstringCommandsTest, GrowthBeyondTheMemoryLimitIsRefused) {
  run({"SET", "a", "1"});
  memory_.set_limit(memory_.refresh() + (4 << 20));
  EXPECT_EQ(run({"SETRANGE", "a", "100000000", "x"}), error(kOutOfMemory));
  EXPECT_EQ(run({"SETRANGE", "b", "100000000", "x"}), error(kOutOfMemory));
  EXPECT_EQ(run({"STRLEN", "a"}), integer(1));
}

TEST_F(SubstringCommandsTest, OtherTypesAreRefused) {
  put_filter(keyspace_, "f");
  EXPECT_EQ(run({"APPEND", "f", "x"}), error(kWrongType));
  EXPECT_EQ(run({"STRLEN", "f"}), error(kWrongType));
  EXPECT_EQ(run({"GETRANGE", "f", "0", "1"}), error(kWrongType));
  EXPECT_EQ(run({"SETRANGE", "f", "0", "x"}), error(kWrongType));
}

TEST_F(SubstringCommandsTest, RandomEditsMatchAStdString) {
  constexpr unsigned kSeed = 20240501;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::string model;
  for (int i = 0; i < 2'000; ++i) {
    const std::string text(random() % 40, static_cast<char>('a' + random() % 26));
    const size_t offset = random() % 300;
    if (random() % 2 == 0) {
      if (model.size() > 400) model.clear(), run({"SET", "a", ""});
      model += text;
      EXPECT_EQ(run({"APPEND", "a", text}), integer(static_cast<int64_t>(model.size())));
    } else {
      if (!text.empty() && model.size() < offset + text.size()) model.resize(offset + text.size());
      model.replace(std::min(offset, model.size()), text.size(), text);
      EXPECT_EQ(run({"SETRANGE", "a", std::to_string(offset), text}),
                integer(static_cast<int64_t>(model.size())));
    }
    ASSERT_EQ(run({"GETRANGE", "a", "0", "-1"}), bulk(model));
  }
}

}  // namespace
}  // namespace server
