// SPDX-License-Identifier: MIT
#include "server/base/config/special_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/base/config/value.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

class SpecialValuesTest : public ::testing::Test {
 protected:
  // Returns the canonical text of the value, or "!" and the reason for its rejection.
  std::string text_of(ValueParser parser, const Texts& words, const std::string& current = "") {
    const auto value = parser(option_, words, current);
    return value ? value->text : "!" + value.error().reason;
  }

  Option option_{.name = "a"};
};

TEST_F(SpecialValuesTest, BindTakesUpToSixteenAddresses) {
  EXPECT_EQ(text_of(parse_bind, {""}), "");
  EXPECT_EQ(text_of(parse_bind, {"127.0.0.1", "-::1", "*"}), "127.0.0.1 -::1 *");
  EXPECT_EQ(text_of(parse_bind, Texts(16, "::1")).size(), 16 * 4 - 1U);
  EXPECT_EQ(text_of(parse_bind, Texts(17, "::1")), "!" + std::string(kTooManyAddresses));
  EXPECT_EQ(text_of(parse_bind, {"::1", ""}), "!" + std::string(kAddressesFail));
  EXPECT_EQ(text_of(parse_bind, {"a b"}), "!" + std::string(kAddressesFail));
}

TEST_F(SpecialValuesTest, LeaderIsAHostAndAPortOrNoOne) {
  EXPECT_EQ(text_of(parse_replicaof, {"localhost", "6379"}), "localhost 6379");
  EXPECT_EQ(text_of(parse_replicaof, {"NO", "One"}), "");
  EXPECT_EQ(text_of(parse_replicaof, {""}), "");
  EXPECT_EQ(text_of(parse_replicaof, {"localhost"}), "!" + std::string(kWrongArgumentCount));
  EXPECT_EQ(text_of(parse_replicaof, {"local host", "1"}), "!Invalid master host");
  EXPECT_EQ(text_of(parse_replicaof, {"localhost", "65536"}), "!Invalid master port");
  EXPECT_EQ(write_replicaof(option_, "localhost 6379"), Texts{"a localhost 6379"});
  EXPECT_EQ(write_replicaof(option_, ""), Texts{});
}

TEST_F(SpecialValuesTest, HzIsPulledIntoItsRange) {
  option_.min = 0;
  option_.max = kInt32Max;
  EXPECT_EQ(text_of(parse_hz, {"0"}), "1");
  EXPECT_EQ(text_of(parse_hz, {"10"}), "10");
  EXPECT_EQ(text_of(parse_hz, {"501"}), "500");
  EXPECT_EQ(text_of(parse_hz, {"ten"}), "!" + std::string(kNoInteger));
}

TEST_F(SpecialValuesTest, MemoryOrPartOfMaxmemory) {
  EXPECT_EQ(text_of(parse_memory_or_percent, {"1kb"}), "1024");
  EXPECT_EQ(text_of(parse_memory_or_percent, {""}), "!" + std::string(kNoMemoryOrPercent));
  EXPECT_EQ(text_of(parse_memory_or_percent, {"0%"}), "0");
  const auto half = parse_memory_or_percent(option_, Texts{"50%"}, "");
  EXPECT_EQ(half->text, "50%");
  EXPECT_EQ(half->scalar, -50);
  for (const char* text : {"101%", "9223372036854775808"}) {
    EXPECT_EQ(text_of(parse_memory_or_percent, {text}), "!" + std::string(kPercentTooBig));
  }
  for (const char* text : {"-1%", "%", "1.5%", "x"}) {
    EXPECT_EQ(text_of(parse_memory_or_percent, {text}), "!" + std::string(kNoMemoryOrPercent));
  }
}

TEST_F(SpecialValuesTest, FileNamesStayInTheirDirectory) {
  EXPECT_EQ(text_of(parse_file_name, {"dump.rdb"}), "dump.rdb");
  for (const char* name : {"", ".", "..", "a/b", "/a", "a\\b"}) {
    EXPECT_EQ(text_of(parse_file_name, {name}), "!a can't be a path, just a filename") << name;
  }
  EXPECT_EQ(text_of(parse_file_name, {"a\nb"}), "!a can't hold control characters");
  EXPECT_EQ(text_of(parse_file_name, {std::string("a\0b", 3)}), "!a can't hold control characters");
  EXPECT_EQ(text_of(parse_file_name, {std::string(255, 'x')}), std::string(255, 'x'));
  EXPECT_THAT(text_of(parse_file_name, {std::string(256, 'x')}), HasSubstr("too long"));
}

TEST_F(SpecialValuesTest, NamesOfTheServersOwnFilesAreRefused) {
  for (const char* name : {".bloomery.lock", "cluster.json", "temp-5.rdb", "temp-5-received.rdb",
                           "temp-rewriteaof-5.aof", "temp-rewriteaof-bg-5.aof"}) {
    EXPECT_THAT(text_of(parse_file_name, {name}), HasSubstr("choose another name")) << name;
  }
  for (const char* name : {"temp.rdb", "temp-five.rdb", "temp-rewriteaof-5", "bloomery.lock"}) {
    EXPECT_EQ(text_of(parse_file_name, {name}), name);
  }
}

TEST_F(SpecialValuesTest, SavePointsAddUp) {
  EXPECT_EQ(text_of(parse_save, {"60", "1000"}, "3600 1"), "3600 1 60 1000");
  EXPECT_EQ(text_of(parse_save, {"60", "0", "10", "1"}), "60 0 10 1");
  EXPECT_EQ(text_of(parse_save, {""}, "3600 1"), "");
  for (const Texts& words : {Texts{"60"}, Texts{"0", "1"}, Texts{"60", "-1"}, Texts{"a", "b"}}) {
    EXPECT_EQ(text_of(parse_save, words), "!" + std::string(kInvalidSavePoints));
  }
  EXPECT_EQ(write_save(option_, "3600 1 60 1000"), (Texts{"a 3600 1", "a 60 1000"}));
  EXPECT_EQ(write_save(option_, ""), Texts{"a \"\""});
}

TEST_F(SpecialValuesTest, DirectoryMustExist) {
  EXPECT_EQ(text_of(parse_directory, {"/tmp/.."}), "/");
  EXPECT_EQ(text_of(parse_directory, {"/dev/null"}), "!Not a directory");
  EXPECT_EQ(text_of(parse_directory, {"/nowhere/at/all"}), "!No such file or directory");
  EXPECT_EQ(text_of(parse_directory, {std::string("/\0tmp", 5)}), "!No such file or directory");
}

TEST_F(SpecialValuesTest, BloomRatesLieBetweenZeroAndOne) {
  EXPECT_EQ(text_of(parse_bloom_error_rate, {"0.01"}), "0.01");
  EXPECT_EQ(text_of(parse_bloom_error_rate, {"0.5"}), "0.25");
  EXPECT_EQ(text_of(parse_bloom_ratio, {"0.5"}), "0.5");
  for (const ValueParser parser : {parse_bloom_error_rate, parse_bloom_ratio}) {
    EXPECT_EQ(text_of(parser, {"x"}), "!Invalid value for `a`");
    EXPECT_EQ(text_of(parser, {"1%"}), "!Invalid value for `a`: '1%' is written 0.01");
    for (const char* rate : {"0", "1", "-0.5"}) {
      EXPECT_EQ(text_of(parser, {rate}),
                "!Value for `a` must be in the range (0.000000, 1.000000)");
    }
  }
}

TEST_F(SpecialValuesTest, BloomIntegersHaveTheTextOfRedisBloom) {
  option_.min = 1;
  option_.max = 10;
  EXPECT_EQ(text_of(parse_bloom_integer, {"10"}), "10");
  EXPECT_EQ(text_of(parse_bloom_integer, {"1e1"}), "10");
  EXPECT_EQ(text_of(parse_bloom_integer, {"1,000"}),
            "!argument couldn't be parsed into an integer: '1,000' is written 1000");
  EXPECT_EQ(text_of(parse_bloom_integer, {"11"}), "!Value for `a` must be in the range [1, 10]");
  EXPECT_EQ(text_of(parse_bloom_integer, {"x"}), "!" + std::string(kNoInteger));
}

TEST_F(SpecialValuesTest, EventClassesAreNamedInTheOrderOfRedis) {
  EXPECT_EQ(text_of(parse_keyspace_events, {""}), "");
  EXPECT_EQ(text_of(parse_keyspace_events, {"KEA"}), "AKE");
  EXPECT_EQ(text_of(parse_keyspace_events, {"gdlshzxet"}), "glshzxetd");
  EXPECT_EQ(text_of(parse_keyspace_events, {"g$lshzxetd"}), "A");
  EXPECT_EQ(text_of(parse_keyspace_events, {"mnKKg"}), "gnKm");
  // Unlike Redis, CONFIG REWRITE keeps the `n` of a notify-keyspace-events value that also has an
  // `A`.
  EXPECT_EQ(text_of(parse_keyspace_events, {"KAn"}), "AnK");
  EXPECT_EQ(text_of(parse_keyspace_events, {"KEq"}), "!" + std::string(kInvalidEventClass));
}

TEST_F(SpecialValuesTest, WordsThatCannotWorkAreRefused) {
  EXPECT_EQ(text_of(parse_announced_host, {"some.host"}), "some.host");
  EXPECT_EQ(text_of(parse_announced_host, {""}), "");
  EXPECT_EQ(text_of(parse_announced_host, {"a b"}), "!argument must be a host name or an address");
}

}  // namespace
}  // namespace server
