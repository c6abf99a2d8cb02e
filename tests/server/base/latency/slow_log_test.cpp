// SPDX-License-Identifier: MIT
#include "server/base/latency/slow_log.h"

#include <gtest/gtest.h>

namespace server {
namespace {

SlowCommand slow(int64_t duration_us) {
  SlowCommand command;
  command.duration_us = duration_us;
  command.words = {"GET"};
  return command;
}

TEST(SlowLogTest, NewestComesFirstAndIdsGoOn) {
  SlowLog log;
  for (int64_t i = 0; i < 5; ++i) log.add(slow(i), 3);
  EXPECT_EQ(log.size(), 3U);
  const auto newest = log.newest(2);
  ASSERT_EQ(newest.size(), 2U);
  EXPECT_EQ(newest[0]->id, 4U);
  EXPECT_EQ(newest[1]->id, 3U);
  EXPECT_EQ(log.newest(100).size(), 3U);
  log.clear();
  EXPECT_EQ(log.size(), 0U);
  log.add(slow(9), 3);
  EXPECT_EQ(log.newest(1)[0]->id, 5U);
}

TEST(SlowLogTest, NothingIsKeptWhenTheLengthIsZero) {
  SlowLog log;
  log.add(slow(1), 10);
  log.add(slow(1), 0);
  EXPECT_EQ(log.size(), 0U);
}

TEST(SlowLogTest, LongWordsAndManyWordsAreCut) {
  const std::string at_limit(128, 'a');
  const std::string long_word(131, 'b');
  std::vector<std::string_view> words{at_limit, long_word};
  EXPECT_EQ(trimmed_words(words),
            (std::vector<std::string>{at_limit, std::string(128, 'b') + "... (3 more bytes)"}));
  // The server has not received the last five bytes of the first word yet.
  EXPECT_EQ(trimmed_words(words, {.index = 0, .missing_bytes = 5})[0],
            at_limit + "... (5 more bytes)");
  words.assign(32, "w");
  EXPECT_EQ(trimmed_words(words), std::vector<std::string>(32, "w"));
  words.assign(40, "w");
  const auto cut = trimmed_words(words);
  ASSERT_EQ(cut.size(), 32U);
  EXPECT_EQ(cut[30], "w");
  EXPECT_EQ(cut[31], "... (9 more arguments)");
}

}  // namespace
}  // namespace server
