// SPDX-License-Identifier: MIT
#include "server/base/config/buffer_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server {
namespace {

constexpr const char* kNone = "normal 0 0 0 slave 0 0 0 pubsub 0 0 0";

std::string text_of(const std::vector<std::string>& words, const std::string& current = kNone) {
  const auto value = parse_buffer_limits({}, words, current);
  return value ? value->text : "!" + value.error().reason;
}

TEST(BufferLimitsTest, ClassesNotNamedKeepTheirs) {
  EXPECT_EQ(text_of({"replica", "256mb", "64mb", "60"}),
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 0 0 0");
  EXPECT_EQ(text_of({"PubSub", "1k", "2", "3", "normal", "4", "5", "6"}),
            "normal 4 5 6 slave 0 0 0 pubsub 1000 2 3");
  EXPECT_EQ(text_of({"slave", "1", "2", "3"}, ""), "normal 0 0 0 slave 1 2 3 pubsub 0 0 0");
  EXPECT_EQ(text_of({""}, "normal 1 2 3 slave 0 0 0 pubsub 0 0 0"),
            "normal 1 2 3 slave 0 0 0 pubsub 0 0 0");
}

TEST(BufferLimitsTest, RefusesWithTheTextsOfRedis) {
  const std::string number =
      "!Error in hard, soft or soft_seconds setting in buffer limit configuration.";
  EXPECT_EQ(text_of({"normal", "1", "2"}),
            "!Wrong number of arguments in buffer limit configuration.");
  EXPECT_EQ(text_of({"master", "1", "2", "3"}),
            "!Invalid client class specified in buffer limit configuration.");
  EXPECT_EQ(text_of({"normal", "x", "2", "3"}), number);
  EXPECT_EQ(text_of({"normal", "1", "-2", "3"}), number);
  EXPECT_EQ(text_of({"normal", "1", "2", "-3"}), number);
  EXPECT_EQ(text_of({"normal", "1", "2", "03"}), number);
}

TEST(BufferLimitsTest, TextIsReadBack) {
  const BufferLimits limits = buffer_limits_of("normal 1 2 3 slave 4 5 6 pubsub 7 8 9");
  EXPECT_EQ(limits[0], (BufferLimit{1, 2, 3}));
  EXPECT_EQ(limits[1], (BufferLimit{4, 5, 6}));
  EXPECT_EQ(limits[2], (BufferLimit{7, 8, 9}));
}

TEST(BufferLimitsTest, FilesGetALineForEachClass) {
  const Option option{.name = "a"};
  EXPECT_EQ(
      write_buffer_limits(option, "normal 0 0 0 slave 268435456 1024 60 pubsub 7 0 9"),
      (std::vector<std::string>{"a normal 0 0 0", "a replica 256mb 1kb 60", "a pubsub 7 0 9"}));
}

}  // namespace
}  // namespace server
