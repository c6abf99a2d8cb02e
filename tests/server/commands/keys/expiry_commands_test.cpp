// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using ExpiryCommandsTest = KeyTest;

constexpr std::string_view kMax = "9223372036854775807";

TEST_F(ExpiryCommandsTest, EachFormSetsAndTellsTheSameTime) {
  put("a", "1");
  EXPECT_EQ(run({"EXPIRE", "a", "100"}), integer(1));
  EXPECT_EQ(run({"PTTL", "a"}), integer(100'000));
  EXPECT_EQ(run({"PEXPIRE", "a", "1499"}), integer(1));
  EXPECT_EQ(run({"TTL", "a"}), integer(1));
  EXPECT_EQ(run({"PEXPIRE", "a", "1500"}), integer(1));
  EXPECT_EQ(run({"TTL", "a"}), integer(2));
  EXPECT_EQ(run({"EXPIREAT", "a", "1800000000"}), integer(1));
  EXPECT_EQ(run({"EXPIRETIME", "a"}), integer(1'800'000'000));
  EXPECT_EQ(run({"PEXPIREAT", "a", "1800000000123"}), integer(1));
  EXPECT_EQ(run({"PEXPIRETIME", "a"}), integer(1'800'000'000'123));
}

TEST_F(ExpiryCommandsTest, MissingAndLastingKeysHaveCodes) {
  put("a", "1");
  for (const char* command : {"TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"}) {
    EXPECT_EQ(run({command, "none"}), integer(-2)) << command;
    EXPECT_EQ(run({command, "a"}), integer(-1)) << command;
  }
  EXPECT_EQ(run({"EXPIRE", "none", "10"}), integer(0));
}

TEST_F(ExpiryCommandsTest, PastTimeDeletesAtOnce) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"EXPIRE", "a", "0"},
                                             {"PEXPIRE", "a", "-1"},
                                             {"EXPIREAT", "a", "1"},
                                             {"PEXPIREAT", "a", "-9223372036854775808"}}) {
    put("a", "1");
    EXPECT_EQ(run(command), integer(1)) << command[0];
    EXPECT_EQ(entry_of("a"), nullptr) << command[0];
  }
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(ExpiryCommandsTest, TimesThatDoNotFitAreRefused) {
  put("a", "1");
  EXPECT_EQ(run({"EXPIRE", "a", "9223372036854776"}), error(protocol::invalid_expiry("expire")));
  EXPECT_EQ(run({"EXPIRE", "a", "9223372036854775"}), error(protocol::invalid_expiry("expire")));
  EXPECT_EQ(run({"PEXPIRE", "a", std::string(kMax)}), error(protocol::invalid_expiry("pexpire")));
  EXPECT_EQ(run({"EXPIREAT", "none", "-9223372036854776"}),
            error(protocol::invalid_expiry("expireat")));
  EXPECT_EQ(run({"EXPIRE", "a", "1.5"}), error(protocol::kNotAnInteger));
  EXPECT_EQ(run({"TTL", "a"}), integer(-1));
}

TEST_F(ExpiryCommandsTest, LatestTimeIsReturnedWithoutOverflow) {
  put("a", "1");
  EXPECT_EQ(run({"PEXPIREAT", "a", std::string(kMax)}), integer(1));
  EXPECT_EQ(run({"PEXPIRETIME", "a"}), ":" + std::string(kMax) + "\r\n");
  EXPECT_EQ(run({"EXPIRETIME", "a"}), integer(9'223'372'036'854'776));
}

TEST_F(ExpiryCommandsTest, ConditionsLookAtThePresentExpiry) {
  put("a", "1");
  EXPECT_EQ(run({"EXPIRE", "a", "100", "XX"}), integer(0));
  EXPECT_EQ(run({"EXPIRE", "a", "100", "GT"}), integer(0));
  EXPECT_EQ(run({"EXPIRE", "a", "100", "LT", "XX"}), integer(0));
  EXPECT_EQ(run({"EXPIRE", "a", "100", "lt"}), integer(1));
  EXPECT_EQ(run({"EXPIRE", "a", "50", "NX"}), integer(0));
  EXPECT_EQ(run({"EXPIRE", "a", "100", "GT"}), integer(0));
  EXPECT_EQ(run({"EXPIRE", "a", "101", "GT", "XX"}), integer(1));
  EXPECT_EQ(run({"EXPIRE", "a", "101", "LT"}), integer(0));
  EXPECT_EQ(run({"EXPIRE", "a", "-5", "GT"}), integer(0));
  EXPECT_EQ(run({"TTL", "a"}), integer(101));
}

TEST_F(ExpiryCommandsTest, ConditionsThatExcludeEachOtherAreRefused) {
  EXPECT_THAT(run({"EXPIRE", "a", "1", "NX", "LT"}), is_error("ERR", "NX and XX"));
  EXPECT_THAT(run({"EXPIRE", "a", "1", "GT", "LT"}), is_error("ERR", "GT and LT"));
  EXPECT_THAT(run({"EXPIRE", "a", "x", "soon"}), is_error("ERR", "soon"));
}

TEST_F(ExpiryCommandsTest, PersistTakesTheExpiryBack) {
  put("a", "1");
  EXPECT_EQ(run({"PERSIST", "a"}), integer(0));
  run({"EXPIRE", "a", "10"});
  EXPECT_EQ(run({"PERSIST", "a"}), integer(1));
  advance_ms(11'000);
  EXPECT_EQ(text_of("a"), "1");
  EXPECT_EQ(run({"TTL", "a"}), integer(-1));
  EXPECT_EQ(run({"PERSIST", "none"}), integer(0));
}

TEST_F(ExpiryCommandsTest, WatchersNoticeChangesOfTheExpiryOnly) {
  put("a", "1");
  EXPECT_TRUE(watcher_notices("a", [&] { run({"EXPIRE", "a", "10"}); }));
  EXPECT_FALSE(watcher_notices("a", [&] { run({"EXPIRE", "a", "10", "NX"}); }));
  EXPECT_TRUE(watcher_notices("a", [&] { run({"PERSIST", "a"}); }));
  EXPECT_FALSE(watcher_notices("a", [&] { run({"PERSIST", "a"}); }));
  EXPECT_TRUE(watcher_notices("a", [&] { run({"EXPIRE", "a", "-1"}); }));
}

}  // namespace
}  // namespace server
