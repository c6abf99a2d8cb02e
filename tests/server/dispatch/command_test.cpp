// SPDX-License-Identifier: MIT
#include "server/dispatch/command.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace server {
namespace {

using ArgumentWords = std::vector<std::string_view>;

TEST(LastKeyTest, ARangeEndsWithTheArguments) {
  EXPECT_EQ(last_key_of({1, 1, 1}, ArgumentWords{"get", "a"}), 1);
  EXPECT_EQ(last_key_of({2, 2, 1}, ArgumentWords{"object"}), 0);
  EXPECT_EQ(last_key_of({1, -1, 1}, ArgumentWords{"del", "a", "b"}), 2);
  EXPECT_EQ(last_key_of({1, -1, 1}, ArgumentWords{"del"}), 0);
}

TEST(LastKeyTest, AnOptionBehindTheKeysIsNone) {
  const KeyRange range{.first = 2, .last = -1, .option = "FORCE"};
  EXPECT_EQ(last_key_of(range, ArgumentWords{"bf.merge", "a", "b"}), 2);
  EXPECT_EQ(last_key_of(range, ArgumentWords{"bf.merge", "a", "b", "force"}), 2);
  EXPECT_EQ(last_key_of(range, ArgumentWords{"bf.merge", "a", "b", "force", "c"}), 4);
  // BF.MERGE needs at least one source key, so the word FORCE is a key here.
  EXPECT_EQ(last_key_of(range, ArgumentWords{"bf.merge", "a", "FORCE"}), 2);
}

TEST(LastKeyTest, CountedKeysAreAsManyAsTheirCount) {
  const KeyRange range{.first = 2, .count_at = 1};
  EXPECT_EQ(last_key_of(range, ArgumentWords{"x", "1", "a", "b"}), 2);
  EXPECT_EQ(last_key_of(range, ArgumentWords{"x", "2", "a", "b"}), 3);
  for (const std::string_view count : {"3", "0", "-1", "x", "", "99999999999999999999"}) {
    EXPECT_EQ(last_key_of(range, ArgumentWords{"x", count, "a", "b"}), 1) << count;
  }
  EXPECT_EQ(last_key_of(range, ArgumentWords{"x"}), 1);
  const KeyRange pairs{.first = 2, .step = 2, .count_at = 1};
  EXPECT_EQ(last_key_of(pairs, ArgumentWords{"x", "2", "a", "1", "b", "2"}), 4);
  EXPECT_EQ(last_key_of(pairs, ArgumentWords{"x", "3", "a", "1", "b", "2"}), 1);
}

// The table row names keys as MIGRATE does: one key, or the keys after the word KEYS if that key is
// empty.
TEST(KeysBehindKeywordTest, KeywordStandsInForTheEmptyKey) {
  const Command row{.keys = {{{.first = 3, .last = 3, .use = kKeyRw, .empty_before = "KEYS"},
                              {.first = 5, .last = -1, .use = kKeyRw, .keyword = "KEYS"}}}};
  const auto keys_of = [&](const ArgumentWords& words) {
    ArgumentWords keys;
    for_each_key(row, words, [&](size_t index, uint16_t) { keys.push_back(words[index]); });
    return keys;
  };
  EXPECT_EQ(keys_of({"m", "h", "p", "a", "0"}), ArgumentWords{"a"});
  EXPECT_EQ(keys_of({"m", "h", "p", "a", "0", "COPY"}), ArgumentWords{"a"});
  EXPECT_EQ(keys_of({"m", "h", "p", "", "0", "COPY"}), ArgumentWords{""});
  EXPECT_EQ(keys_of({"m", "h", "p", "", "0", "keys", "a", "b"}), (ArgumentWords{"a", "b"}));
  EXPECT_EQ(keys_of({"m", "h", "p", "", "0", "COPY", "KEYS"}), ArgumentWords{});
  // This MIGRATE is malformed, because it has both a single key and a list of keys. All of these
  // words count as keys.
  EXPECT_EQ(keys_of({"m", "h", "p", "a", "0", "KEYS", "b"}), (ArgumentWords{"a", "b"}));
  EXPECT_EQ(keys_of({"m", "h"}), ArgumentWords{});
}

TEST(KeysBehindKeywordTest, ASecretIsNeverTheKeyword) {
  const auto hides = [](Arguments args, size_t index) { return args[index - 1] == "AUTH"; };
  const Command row{.keys = {{{.first = 1, .last = 1, .use = kKeyRw, .empty_before = "KEYS"},
                              {.first = 2, .last = -1, .use = kKeyRw, .keyword = "KEYS"}}},
                    .hides = hides};
  const auto keys_of = [&](const ArgumentWords& words) {
    ArgumentWords keys;
    for_each_key(row, words, [&](size_t index, uint16_t) { keys.push_back(words[index]); });
    return keys;
  };
  EXPECT_EQ(keys_of({"m", "a", "AUTH", "KEYS"}), ArgumentWords{"a"});
  EXPECT_EQ(keys_of({"m", "", "AUTH", "KEYS"}), ArgumentWords{""});
  EXPECT_EQ(keys_of({"m", "", "AUTH", "KEYS", "KEYS", "b"}), ArgumentWords{"b"});
}

}  // namespace
}  // namespace server
