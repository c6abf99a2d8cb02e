// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "protocol/error_texts.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using ObjectCommandsTest = KeyTest;

TEST_F(ObjectCommandsTest, EncodingFollowsTheValue) {
  put("int", "12345");
  put("short", "abc");
  put("embedded", std::string(44, 'x'));
  put("raw", std::string(45, 'x'));
  put_filter("filter", "item");
  EXPECT_EQ(run({"OBJECT", "ENCODING", "int"}), bulk("int"));
  EXPECT_EQ(run({"OBJECT", "ENCODING", "short"}), bulk("embstr"));
  EXPECT_EQ(run({"OBJECT", "ENCODING", "embedded"}), bulk("embstr"));
  EXPECT_EQ(run({"OBJECT", "ENCODING", "raw"}), bulk("raw"));
  EXPECT_EQ(run({"OBJECT", "ENCODING", "filter"}), bulk("raw"));
  EXPECT_EQ(run({"OBJECT", "ENCODING", "none"}), kNull);
}

TEST_F(ObjectCommandsTest, SmallIntegersCountAsShared) {
  put("a", "9999");
  put("b", "10000");
  put("c", "-1");
  EXPECT_EQ(run({"OBJECT", "REFCOUNT", "a"}), integer(2'147'483'647));
  EXPECT_EQ(run({"OBJECT", "REFCOUNT", "b"}), integer(1));
  EXPECT_EQ(run({"OBJECT", "REFCOUNT", "c"}), integer(1));
}

TEST_F(ObjectCommandsTest, EvictionByUseSharesNoIntegers) {
  put("a", "1");
  for (const std::string policy : {"allkeys-lru", "volatile-lfu"}) {
    EXPECT_EQ(run({"CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "0"}), kOk);
    EXPECT_EQ(run({"OBJECT", "REFCOUNT", "a"}), integer(2'147'483'647)) << policy;
    EXPECT_EQ(run({"CONFIG", "SET", "maxmemory", "100gb"}), kOk);
    EXPECT_EQ(run({"OBJECT", "REFCOUNT", "a"}), integer(1)) << policy;
  }
  EXPECT_EQ(run({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), kOk);
  EXPECT_EQ(run({"OBJECT", "REFCOUNT", "a"}), integer(2'147'483'647));
}

TEST_F(ObjectCommandsTest, LookingDoesNotEndTheIdleTime) {
  put("a", "1");
  advance_ms(7000);
  run({"OBJECT", "ENCODING", "a"});
  run({"OBJECT", "REFCOUNT", "a"});
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(7));
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(7));
  run({"TOUCH", "a"});
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(0));
}

TEST_F(ObjectCommandsTest, FreqNeedsALfuPolicy) {
  put("a", "1");
  EXPECT_THAT(run({"OBJECT", "FREQ", "a"}), is_error("ERR", "frequency not tracked"));
  EXPECT_EQ(run({"OBJECT", "FREQ", "none"}), kNull);
}

TEST_F(ObjectCommandsTest, HelpListsTheSubcommands) {
  const std::string help = run({"OBJECT", "HELP"});
  EXPECT_NE(help.find("ENCODING key"), std::string::npos);
  EXPECT_EQ(run({"OBJECT", "nope"}), error(protocol::unknown_subcommand("nope", "OBJECT")));
}

}  // namespace
}  // namespace server
