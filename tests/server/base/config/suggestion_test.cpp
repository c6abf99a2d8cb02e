// SPDX-License-Identifier: MIT
#include "server/base/config/suggestion.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(SuggestionTest, NamesTheNearestDirective) {
  for (const auto& [written, meant] :
       {std::pair{"max-memory", "maxmemory"}, std::pair{"maxmemory_policy", "maxmemory-policy"},
        std::pair{"appendonyl", "appendonly"}, std::pair{"apendfsync", "appendfsync"},
        std::pair{"requirepas", "requirepass"}, std::pair{"ports", "port"},
        std::pair{"bf.bloom_capasity", "bf.bloom-capacity"},
        std::pair{"rename-comand", "rename-command"}}) {
    EXPECT_EQ(hint_for(written), std::string("; did you mean '") + meant + "'?");
  }
}

TEST(SuggestionTest, OtherWordsGetNoSuggestion) {
  for (const char* word : {"foo", "bar", "colour", "", "zookeeper-quorum"}) {
    EXPECT_EQ(hint_for(word), "") << word;
  }
  EXPECT_EQ(hint_for(std::string(100'000, 'p')), "");
  EXPECT_EQ(hint_for("include"), "");
}

TEST(SuggestionTest, OptionsWithOneDashAreExplained) {
  EXPECT_EQ(hint_for("-p"), kPortHint);
  EXPECT_EQ(hint_for("-x"), kDashesHint);
}

}  // namespace
}  // namespace server
