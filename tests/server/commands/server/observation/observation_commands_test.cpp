// SPDX-License-Identifier: MIT
#include "tests/support/command_test.h"

namespace server {
namespace {

using ObservationCommandsTest = CommandTest;

TEST_F(ObservationCommandsTest, SlowlogShowsTheNewestFirst) {
  run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  run({"SLOWLOG", "RESET"});
  run({"CLIENT", "SETNAME", "me"});
  run({"SET", "k", "v"});
  run({"CONFIG", "SET", "slowlog-log-slower-than", "-1"});
  // RESET itself, SETNAME, SET.
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
    EXPECT_EQ(run({"SLOWLOG", "GET", count}),
              error("ERR count should be greater than or equal to -1"));
  }
  EXPECT_EQ(run({"SLOWLOG", "get", "1", "2"}),
            error("ERR unknown subcommand or wrong number of arguments for 'get'. Try SLOWLOG "
                  "HELP."));
}

TEST_F(ObservationCommandsTest, MonitorIsRefusedInATransaction) {
  run({"MULTI"});
  run({"MONITOR"});
  EXPECT_EQ(run({"EXEC"}), "*1\r\n" + error("ERR MONITOR isn't allowed for DENY BLOCKING client"));
}

}  // namespace
}  // namespace server
