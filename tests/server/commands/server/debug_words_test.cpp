// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "tests/support/key_test.h"

namespace server {
namespace {

using ::testing::MatchesRegex;

class DebugWordsTest : public KeyTest {
 protected:
  void allow() { config_.replace(OptionId::kEnableDebugCommand, "yes"); }
};

TEST_F(DebugWordsTest, EveryWordIsRefusedUnlessDebugIsEnabled) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"ERROR", "x"},
                                             {"LOG", "x"},
                                             {"OBJECT", "k"},
                                             {"POPULATE", "1"},
                                             {"PROTOCOL", "true"},
                                             {"REPLYBUFFER", "RESIZING", "0"},
                                             {"SET-ACTIVE-EXPIRE", "0"},
                                             {"STRINGMATCH-LEN", "a", "a"},
                                             {"CHANGE-REPL-ID"},
                                             {"DIGEST"}}) {
    std::vector<std::string> command{"DEBUG"};
    command.insert(command.end(), words.begin(), words.end());
    EXPECT_TRUE(run(command).starts_with("-ERR DEBUG command not allowed.")) << words[0];
  }
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

TEST_F(DebugWordsTest, PopulateMakesWhatIsNotThere) {
  allow();
  put("key:1", "mine");
  EXPECT_EQ(run({"DEBUG", "POPULATE", "3"}), kOk);
  EXPECT_EQ(text_of("key:0"), "value:0");
  EXPECT_EQ(text_of("key:1"), "mine");
  EXPECT_EQ(text_of("key:2"), "value:2");
  EXPECT_EQ(run({"DEBUG", "POPULATE", "2", "big", "20"}), kOk);
  EXPECT_EQ(text_of("big:1"), "value:1" + std::string(13, '\0'));
  EXPECT_EQ(run({"DEBUG", "POPULATE", "1", "small", "3"}), kOk);
  EXPECT_EQ(text_of("small:0"), "val");
  for (const char* count : {"x", "-1"}) {
    EXPECT_EQ(run({"DEBUG", "POPULATE", count}),
              error("ERR value is out of range, must be positive"));
  }
  EXPECT_TRUE(
      run({"DEBUG", "POPULATE", "9000000000000000000", "k", "500000000"}).starts_with("-OOM"));
}

TEST_F(DebugWordsTest, PopulateInATransactionIsSeenByWatchers) {
  allow();
  EXPECT_TRUE(watcher_notices("key:0", [this] {
    run({"MULTI"});
    run({"DEBUG", "POPULATE", "2"});
    EXPECT_EQ(run({"EXEC"}), "*1\r\n" + kOk);
  }));
}

TEST_F(DebugWordsTest, ObjectShowsHowAValueIsKept) {
  allow();
  put("k", "hello");
  put_filter("f", "item");
  EXPECT_THAT(run({"DEBUG", "OBJECT", "k"}),
              MatchesRegex("\\+Value at:0x[0-9a-f]+ refcount:1 encoding:embstr "
                           "serializedlength:6 lru:[0-9]+ lru_seconds_idle:0\r\n"));
  EXPECT_TRUE(run({"DEBUG", "OBJECT", "f"}).starts_with("+Value at:"));
  EXPECT_EQ(run({"DEBUG", "OBJECT", "none"}), error("ERR no such key"));
}

TEST_F(DebugWordsTest, ErrorsAreAnsweredInOneLine) {
  allow();
  EXPECT_EQ(run({"DEBUG", "ERROR", "CODE a\r\nb"}), "-CODE a  b\r\n");
}

TEST_F(DebugWordsTest, ActiveExpiryCanBeOff) {
  allow();
  EXPECT_EQ(run({"DEBUG", "SET-ACTIVE-EXPIRE", "0"}), kOk);
  EXPECT_FALSE(state_.expires_actively);
  EXPECT_EQ(run({"DEBUG", "SET-ACTIVE-EXPIRE", "1"}), kOk);
  EXPECT_TRUE(state_.expires_actively);
}

TEST_F(DebugWordsTest, AReplicationIdCanBeChanged) {
  allow();
  const std::string before = replication_.ids().id;
  EXPECT_EQ(run({"DEBUG", "CHANGE-REPL-ID"}), kOk);
  EXPECT_NE(replication_.ids().id, before);
  EXPECT_EQ(replication_.ids().id2, std::string(40, '0'));
}

TEST_F(DebugWordsTest, PatternsAreMatched) {
  allow();
  EXPECT_EQ(run({"DEBUG", "STRINGMATCH-LEN", "a*c", "abc"}), integer(1));
  EXPECT_EQ(run({"DEBUG", "STRINGMATCH-LEN", "a?c", "ac"}), integer(0));
}

TEST_F(DebugWordsTest, WordsThatWouldHarmAreUnknown) {
  allow();
  for (const char* word : {"SEGFAULT", "PANIC", "OOM", "ASSERT", "RESTART", "LEAK", "JMAP"}) {
    EXPECT_TRUE(run({"DEBUG", word}).starts_with("-ERR unknown subcommand '")) << word;
  }
}

}  // namespace
}  // namespace server
