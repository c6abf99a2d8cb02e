// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/config/value.h"
#include "server/base/latency/slow_log.h"
#include "server/session/observer.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ObservationCommandsTest = CommandTest;

TEST_F(ObservationCommandsTest, SlowlogShowsTheNewestFirst) {
  run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  run({"SLOWLOG", "RESET"});
  run({"CLIENT", "SETNAME", "me"});
  run({"SET", "k", "v"});
  run({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
  // The slow log contains SLOWLOG RESET, CLIENT SETNAME and SET.
  EXPECT_EQ(run({"SLOWLOG", "LEN"}), integer(3));
  const std::string reply = run({"SLOWLOG", "GET", "1"});
  EXPECT_TRUE(reply.starts_with("*1\r\n*6\r\n:3\r\n:1700000000\r\n:")) << reply;
  EXPECT_TRUE(
      reply.ends_with("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$11\r\n127.0.0.1:1\r\n"
                      "$2\r\nme\r\n"))
      << reply;
  EXPECT_TRUE(run({"SLOWLOG", "GET", "-1"}).starts_with("*3\r\n"));
  EXPECT_EQ(run({"SLOWLOG", "GET", "0"}), "*0\r\n");
  EXPECT_EQ(run({"SLOWLOG", "RESET"}), kOk);
  EXPECT_EQ(run({"SLOWLOG", "GET"}), "*0\r\n");
}

TEST_F(ObservationCommandsTest, SlowlogRefusesAWrongCount) {
  for (const char* count : {"-2", "x", "99999999999999999999"}) {
    EXPECT_THAT(run({"SLOWLOG", "GET", count}), is_error("ERR", "count"));
  }
  EXPECT_EQ(run({"SLOWLOG", "get", "1", "2"}), error(protocol::wrong_subcommand("get", "SLOWLOG")));
}

TEST_F(ObservationCommandsTest, MonitorIsRefusedInATransaction) {
  run({"MULTI"});
  run({"MONITOR"});
  const std::string reply = run({"EXEC"});
  EXPECT_THAT(reply, ::testing::StartsWith("*1\r\n-ERR "));
  EXPECT_THAT(reply, ::testing::HasSubstr("MONITOR"));
}

class SlowlogEntriesTest : public CommandTest {
 protected:
  using Words = std::vector<std::string>;

  SlowlogEntriesTest() {
    run({"CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "1000"});
  }
  // Returns the arguments of a command as its slow-log entry shows them, possibly truncated.
  Words logged(const Words& command) {
    run(command);
    const auto newest = observer_.slow_log().newest(1);
    return newest.empty() ? Words{} : newest[0]->words;
  }
  bool is_logged(const Words& command) {
    const size_t before = observer_.slow_log().size();
    run(command);
    return observer_.slow_log().size() > before;
  }
};

TEST_F(SlowlogEntriesTest, WordsAreKeptAsTheyCame) {
  const Words bytes{"SET", "k", std::string("a b\"c\\d\n\r\t\a\b\0\x7f\xff", 14)};
  EXPECT_EQ(logged(bytes), bytes);
  const Words lower{"set", "Case", "v", "EX", "100"};
  EXPECT_EQ(logged(lower), lower);
  EXPECT_EQ(logged({"ECHO", ""}), (Words{"ECHO", ""}));
}

TEST_F(SlowlogEntriesTest, RejectedCommandsAreNotLogged) {
  EXPECT_FALSE(is_logged({"GET"}));
  EXPECT_FALSE(is_logged({"NOSUCH", "x"}));
  EXPECT_TRUE(is_logged({"INCR", "k"}));
  run({"SET", "k", "text"});
  EXPECT_TRUE(is_logged({"INCR", "k"})) << "though it fails";
}

TEST_F(SlowlogEntriesTest, ManyWordsAreCut) {
  Words command{"DEL"};
  for (int i = 0; i < 31; ++i) command.push_back("key" + std::to_string(i));
  EXPECT_EQ(logged(command), command);
  command.emplace_back("key31");
  const Words cut = logged(command);
  ASSERT_EQ(cut.size(), 32U);
  EXPECT_EQ(cut[30], "key29");
  EXPECT_EQ(cut[31], "... (2 more arguments)");
}

TEST_F(SlowlogEntriesTest, ALongWordIsCut) {
  EXPECT_EQ(logged({"SET", "long", std::string(500, 'x')})[2],
            std::string(128, 'x') + "... (372 more bytes)");
}

TEST_F(SlowlogEntriesTest, SecretsAreHidden) {
  const std::string hidden = "(redacted)";
  EXPECT_EQ(logged({"AUTH", "default", "s"}), (Words{"AUTH", hidden, hidden}));
  EXPECT_EQ(logged({"AUTH", "s"}), (Words{"AUTH", hidden}));
  EXPECT_EQ(logged({"HELLO", "2", "AUTH", "default", "s", "SETNAME", "me"}),
            (Words{"HELLO", "2", "AUTH", hidden, hidden, "SETNAME", "me"}));
  EXPECT_EQ(logged({"CONFIG", "SET", "timeout", "0", "masterauth", "s"}),
            (Words{"CONFIG", "SET", "timeout", "0", "masterauth", hidden}));
}

TEST_F(SlowlogEntriesTest, CommandsOfATransactionAreKeptAndExecIsNot) {
  EXPECT_TRUE(is_logged({"MULTI"}));
  EXPECT_FALSE(is_logged({"SET", "k", "1"})) << "it is queued";
  EXPECT_EQ(logged({"EXEC"}), (Words{"SET", "k", "1"}));
}

TEST_F(SlowlogEntriesTest, AnEntryTellsWhoAndWhen) {
  run({"CLIENT", "SETNAME", "tester"});
  run({"ECHO", "x"});
  const auto newest = observer_.slow_log().newest(2);
  ASSERT_EQ(newest.size(), 2U);
  EXPECT_EQ(newest[0]->id, newest[1]->id + 1);
  EXPECT_EQ(newest[0]->client_name, "tester");
  EXPECT_EQ(newest[0]->address, "127.0.0.1:1");
  EXPECT_GE(newest[0]->duration_us, 0);
}

TEST_F(ObservationCommandsTest, SlowlogKnowsThreeWords) {
  EXPECT_EQ(run({"SLOWLOG", "LEN", "x"}), error(protocol::wrong_arity("slowlog|len")));
  EXPECT_EQ(run({"SLOWLOG", "NOSUCH"}), error(protocol::unknown_subcommand("NOSUCH", "SLOWLOG")));
  EXPECT_EQ(run({"MONITOR", "x"}), error(protocol::wrong_arity("monitor")));
}

TEST_F(ObservationCommandsTest, OptionsOfTheSlowLogHaveBounds) {
  const auto refused = [this](const std::string& name, const std::string& value, int64_t least) {
    EXPECT_EQ(run({"CONFIG", "SET", name, value}),
              error(config_set_error(name, out_of_range(least, INT64_MAX).reason)));
  };
  refused("slowlog-log-slower-than", "-2", -1);
  refused("slowlog-max-len", "-1", 0);
  refused("latency-monitor-threshold", "-1", 0);
  EXPECT_EQ(run({"CONFIG", "SET", "slowlog-max-len", "5"}), kOk);
  EXPECT_EQ(run({"CONFIG", "GET", "slowlog-max-len"}), array({bulk("slowlog-max-len"), bulk("5")}));
}

}  // namespace
}  // namespace server
