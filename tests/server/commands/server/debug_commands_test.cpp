// SPDX-License-Identifier: MIT
#include "server/commands/server/debug_commands.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>

#include "persistence/journal.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/context.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using testing::MatchesRegex;
using testing::StartsWith;

class DebugCommandsTest : public CommandTest {
 protected:
  DebugCommandsTest() { config_.replace(OptionId::kEnableDebugCommand, "yes"); }
};

TEST_F(DebugCommandsTest, NoneIsAllowedUnlessTheOptionSaysSo) {
  config_.replace(OptionId::kEnableDebugCommand, "no");
  for (const char* const word : {"RELOAD", "LOADAOF", "DIGEST"}) {
    EXPECT_THAT(run({"DEBUG", word}), StartsWith("-ERR DEBUG command not allowed.")) << word;
  }
  EXPECT_THAT(run({"DEBUG", "SLEEP", "0"}), StartsWith("-ERR DEBUG command not allowed."));
}

TEST_F(DebugCommandsTest, LocalClientsMayBeAllowed) {
  config_.replace(OptionId::kEnableDebugCommand, "local");
  EXPECT_EQ(run({"DEBUG", "SLEEP", "0"}), kOk);
  client_->session->client->address = "192.0.2.1:5";
  EXPECT_THAT(run({"DEBUG", "SLEEP", "0"}), StartsWith("-ERR DEBUG command not allowed."));
}

TEST_F(DebugCommandsTest, SleepTakesItsTime) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run({"DEBUG", "SLEEP", "0.05"}), kOk);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
}

TEST_F(DebugCommandsTest, SleepTakesNoOddTimes) {
  for (const char* const seconds : {"-1", "x", "nan", "inf", "3601", ""}) {
    EXPECT_EQ(run({"DEBUG", "SLEEP", seconds}), error(kNotAFloat)) << seconds;
  }
}

TEST_F(DebugCommandsTest, ReloadTakesOneWord) {
  EXPECT_EQ(run({"DEBUG", "RELOAD", "MAYBE"}), error(kSyntaxError));
  EXPECT_EQ(client_->last_result.pending.reply, nullptr);
}

TEST_F(DebugCommandsTest, NothingIsReloadedInATransaction) {
  for (const char* const word : {"RELOAD", "LOADAOF"}) {
    run({"MULTI"});
    EXPECT_THAT(run({"DEBUG", word}), StartsWith("-ERR")) << word;
    EXPECT_THAT(run({"EXEC"}), StartsWith("-EXECABORT")) << word;
  }
}

TEST_F(DebugCommandsTest, DigestsOfValuesNameEachKey) {
  run({"SET", "a", "1"});
  run({"SET", "b", "1"});
  const std::string nothing = "+" + std::string(40, '0') + "\r\n";
  const std::string digests = run({"DEBUG", "DIGEST-VALUE", "a", "b", "none"});
  EXPECT_THAT(digests, StartsWith("*3\r\n"));
  EXPECT_THAT(digests, testing::HasSubstr(std::string(40, '0')));
  EXPECT_EQ(run({"DEBUG", "DIGEST-VALUE", "a"}), run({"DEBUG", "DIGEST-VALUE", "b"}));
  EXPECT_NE(run({"DEBUG", "DIGEST"}), nothing);
  run({"FLUSHALL"});
  EXPECT_EQ(run({"DEBUG", "DIGEST"}), nothing);
}

TEST_F(DebugCommandsTest, HelpListsTheWords) {
  const std::string help = run({"DEBUG", "HELP"});
  for (const char* const word : {"RELOAD", "LOADAOF", "SLEEP", "DIGEST", "POPULATE"}) {
    EXPECT_THAT(help, testing::HasSubstr(word));
  }
}

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
                                             {"PAUSE-CRON", "1"},
                                             {"CONFIG-REWRITE-FORCE-ALL"},
                                             {"HELP"},
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

TEST_F(DebugWordsTest, OptionsForTestsAreSetWhereDebugIsAllowed) {
  const std::vector<std::string> set{"CONFIG", "SET", "rdb-key-save-delay", "100"};
  EXPECT_TRUE(run(set).starts_with("-ERR DEBUG command not allowed."));
  allow();
  EXPECT_EQ(run(set), kOk);
  for (const char* const name : {"rdb-key-save-delay", "key-load-delay", "watchdog-period",
                                 "loading-process-events-interval-bytes"}) {
    EXPECT_NE(run({"CONFIG", "GET", name}), array({})) << name;
    EXPECT_EQ(run({"CONFIG", "GET", "*"}).find(name), std::string::npos) << name;
  }
}

TEST_F(DebugWordsTest, PauseCronIsKeptForThePeriodicTask) {
  allow();
  EXPECT_EQ(run({"DEBUG", "PAUSE-CRON", "1"}), kOk);
  EXPECT_TRUE(state_.is_cron_paused);
  EXPECT_EQ(run({"DEBUG", "PAUSE-CRON", "0"}), kOk);
  EXPECT_FALSE(state_.is_cron_paused);
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
    EXPECT_EQ(run({"DEBUG", "POPULATE", count}), error(protocol::kNotPositive));
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
  EXPECT_EQ(run({"DEBUG", "OBJECT", "none"}), error(kNoSuchKey));
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

// Tests DEBUG PROTOCOL, which returns a sample of each reply type. The samples are those of Redis
// 7.0.15.
class DebugProtocolTest : public CommandTest {
 protected:
  DebugProtocolTest() { config_.replace(OptionId::kEnableDebugCommand, "yes"); }
  std::string sample(const std::string& type) { return run({"DEBUG", "PROTOCOL", type}); }

  const std::string numbers_ = integer(0) + integer(1) + integer(2);
};

TEST_F(DebugProtocolTest, TypesThatBothProtocolsHave) {
  for (const char* const protocol : {"2", "3"}) {
    run({"HELLO", protocol});
    EXPECT_EQ(sample("string"), bulk("Hello World"));
    EXPECT_EQ(sample("integer"), integer(12345));
    EXPECT_EQ(sample("array"), "*3\r\n" + numbers_);
  }
}

TEST_F(DebugProtocolTest, Resp2WritesTheOthersAsThese) {
  EXPECT_EQ(sample("double"), bulk("3.141"));
  EXPECT_EQ(sample("bignum"), bulk("1234567999999999999999999999999999999"));
  EXPECT_EQ(sample("null"), kNull);
  EXPECT_EQ(sample("set"), "*3\r\n" + numbers_);
  EXPECT_EQ(sample("map"),
            array({integer(0), integer(0), integer(1), integer(1), integer(2), integer(0)}));
  EXPECT_EQ(sample("attrib"), bulk("Some real reply following the attribute"));
  EXPECT_THAT(sample("push"), is_error("ERR", "RESP2"));
  EXPECT_EQ(sample("verbatim"), bulk("This is a verbatim\nstring"));
  EXPECT_EQ(sample("true"), integer(1));
  EXPECT_EQ(sample("false"), integer(0));
}

TEST_F(DebugProtocolTest, Resp3HasTypesOfItsOwn) {
  run({"HELLO", "3"});
  EXPECT_EQ(sample("double"), ",3.141\r\n");
  EXPECT_EQ(sample("bignum"), "(1234567999999999999999999999999999999\r\n");
  EXPECT_EQ(sample("null"), "_\r\n");
  EXPECT_EQ(sample("set"), "~3\r\n" + numbers_);
  EXPECT_EQ(sample("map"), "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n");
  EXPECT_EQ(sample("attrib"), "|1\r\n" + bulk("key-popularity") + "*2\r\n" + bulk("key:123") +
                                  integer(90) + bulk("Some real reply following the attribute"));
  EXPECT_EQ(sample("push"), ">2\r\n" + bulk("server-cpu-usage") + integer(42) +
                                bulk("Some real reply following the push reply"));
  EXPECT_EQ(sample("verbatim"), "=29\r\ntxt:This is a verbatim\nstring\r\n");
  EXPECT_EQ(sample("true"), "#t\r\n");
  EXPECT_EQ(sample("false"), "#f\r\n");
}

TEST_F(DebugProtocolTest, OtherTypesAreRefused) {
  EXPECT_THAT(sample("x"), is_error("ERR", "protocol type name"));
}

TEST_F(DebugWordsTest, OptionsOfReplyBuffersAreTaken) {
  allow();
  EXPECT_EQ(run({"DEBUG", "REPLYBUFFER", "RESIZING", "0"}), kOk);
  EXPECT_EQ(run({"DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", "never"}), kOk);
  EXPECT_EQ(run({"DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", "x"}), error(kNotAnInteger));
}

TEST_F(DebugWordsTest, PopulatedKeysReachTheJournal) {
  allow();
  journal_.set_active(true);
  EXPECT_EQ(run({"DEBUG", "POPULATE", "2", "k", "9"}), kOk);
  std::string journalled;
  journal_.take(journalled);
  for (const char* const key : {"k:0", "k:1"}) {
    const std::string value = std::string("value:") + key[2] + std::string(2, '\0');
    EXPECT_NE(journalled.find(bulk(key) + bulk(value)), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace server
