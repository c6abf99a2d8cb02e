// SPDX-License-Identifier: MIT
#include "server/session/observer.h"

#include "server/base/latency/slow_log.h"
#include "server/session/pubsub/monitor_feed.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class ObserverTest : public CommandTest {
 protected:
  std::string monitored() { return observer_.monitors().take(0).lines; }
  // Returns the arguments of the newest entry of the slow log.
  std::vector<std::string> slowest() {
    const auto entries = observer_.slow_log().newest(1);
    return entries.empty() ? std::vector<std::string>{} : entries[0]->words;
  }
};

TEST_F(ObserverTest, OnlySlowCommandsAreLookedAt) {
  EXPECT_GT(observer_.ticks_min(), 0U);
  run({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
  EXPECT_GT(observer_.ticks_min(), uint64_t{1} << 50);
  run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  EXPECT_EQ(observer_.ticks_min(), 0U);
  run({"CONFIG", "SET", "slowlog-log-slower-than", "10000000"});
  const uint64_t slow = observer_.ticks_min();
  run({"CONFIG", "SET", "latency-monitor-threshold", "10"});
  EXPECT_LT(observer_.ticks_min(), slow);
}

TEST_F(ObserverTest, AMonitorWantsAllCommands) {
  run({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
  run_as_other({"MONITOR"});
  EXPECT_EQ(observer_.ticks_min(), 0U);
  run_as_other({"RESET"});
  EXPECT_GT(observer_.ticks_min(), 0U);
}

TEST_F(ObserverTest, SecretsAreHidden) {
  run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  other_->run({"MONITOR"});
  run({"AUTH", "user", "secret"});
  EXPECT_EQ(slowest(), (std::vector<std::string>{"AUTH", "(redacted)", "(redacted)"}));
  run({"HELLO", "3", "SETNAME", "AUTH", "AUTH", "user", "secret", "SETNAME", "x"});
  EXPECT_EQ(slowest(), (std::vector<std::string>{"HELLO", "3", "SETNAME", "AUTH", "AUTH",
                                                 "(redacted)", "(redacted)", "SETNAME", "x"}));
  run({"HELLO", "3", "WRONG", "auth", "user", "secret"});
  EXPECT_EQ(slowest().back(), "(redacted)");
  run({"CONFIG", "SET", "timeout", "5", "requirepass", "secret"});
  EXPECT_EQ(slowest(), (std::vector<std::string>{"CONFIG", "SET", "timeout", "5", "requirepass",
                                                 "(redacted)"}));
  const std::string lines = monitored();
  EXPECT_NE(lines.find("\"AUTH\" \"(redacted)\""), std::string::npos);
  EXPECT_EQ(lines.find("secret"), std::string::npos);
  EXPECT_EQ(lines.find("CONFIG"), std::string::npos) << "administrative commands are not shown";
}

TEST_F(ObserverTest, CommandsOfATransactionAreShownWhenTheyRun) {
  run_as_other({"MONITOR"});
  run({"MULTI"});
  run({"SELECT", "3"});
  run({"SET", "k", "v"});
  EXPECT_EQ(monitored(), "+1700000000.000000 [0 127.0.0.1:1] \"MULTI\"\r\n");
  run({"EXEC"});
  EXPECT_EQ(monitored(),
            "+1700000000.000000 [3 127.0.0.1:1] \"SELECT\" \"3\"\r\n"
            "+1700000000.000000 [3 127.0.0.1:1] \"SET\" \"k\" \"v\"\r\n"
            "+1700000000.000000 [3 127.0.0.1:1] \"EXEC\"\r\n");
}

TEST_F(ObserverTest, MonitorShowsOnlyExecutedCommands) {
  run_as_other({"MONITOR"});
  run({"NOSUCH"});
  run({"GET"});
  EXPECT_EQ(monitored(), "");
  run({"INCR", "k", "x"});
  run({"SET", "k", "v"});
  run({"INCR", "k"});
  EXPECT_EQ(monitored(),
            "+1700000000.000000 [0 127.0.0.1:1] \"SET\" \"k\" \"v\"\r\n"
            "+1700000000.000000 [0 127.0.0.1:1] \"INCR\" \"k\"\r\n");
}

TEST_F(ObserverTest, TheEndOfASessionEndsItsMonitor) {
  {
    TestClient third(*this);
    third.run({"MONITOR"});
    EXPECT_EQ(observer_.monitors().count(), 1U);
    EXPECT_EQ(third.run({"MONITOR"}), "") << "as Redis: no second reply";
  }
  EXPECT_EQ(observer_.monitors().count(), 0U);
}

}  // namespace
}  // namespace server
