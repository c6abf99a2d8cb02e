// SPDX-License-Identifier: MIT
#include "server/process/server_state.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ScriptCommandsTest = CommandTest;

TEST_F(ScriptCommandsTest, NoScriptExists) {
  EXPECT_EQ(run({"SCRIPT", "EXISTS", "a", "b"}), array({integer(0), integer(0)}));
  EXPECT_EQ(run({"SCRIPT", "FLUSH"}), kOk);
  EXPECT_EQ(run({"SCRIPT", "FLUSH", "async"}), kOk);
  EXPECT_EQ(run({"SCRIPT", "FLUSH", "now"}),
            error("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
}

TEST_F(ScriptCommandsTest, NoFunctionExists) {
  EXPECT_EQ(run({"FUNCTION", "LIST", "LIBRARYNAME", "*", "WITHCODE"}), "*0\r\n");
  EXPECT_EQ(run({"FUNCTION", "LIST", "WITHCODE", "WITHCODE"}),
            error("ERR Unknown argument WITHCODE"));
  EXPECT_EQ(run({"FUNCTION", "LIST", "LIBRARYNAME"}),
            error("ERR library name argument was not given"));
  EXPECT_EQ(run({"FUNCTION", "FLUSH", "SYNC"}), kOk);
  EXPECT_EQ(run({"FUNCTION", "FLUSH", "x"}),
            error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
  EXPECT_EQ(state_.changes.load(), 0U) << "a flush of nothing changes nothing";
}

TEST_F(ScriptCommandsTest, NothingRuns) {
  const std::string nothing = error("NOTBUSY No scripts in execution right now.");
  EXPECT_EQ(run({"SCRIPT", "KILL"}), nothing);
  EXPECT_EQ(run({"FUNCTION", "KILL"}), nothing);
}

TEST_F(ScriptCommandsTest, CommandsThatRunScriptsAreUnknown) {
  EXPECT_TRUE(run({"EVAL", "return 1", "0"}).starts_with("-ERR unknown command 'EVAL'"));
  EXPECT_TRUE(run({"SCRIPT", "LOAD", "x"}).starts_with("-ERR unknown subcommand 'LOAD'"));
}

TEST_F(ScriptCommandsTest, FunctionListChecksItsOptions) {
  EXPECT_EQ(run({"FUNCTION", "LIST"}), "*0\r\n");
  EXPECT_EQ(run({"FUNCTION", "LIST", "x"}), error("ERR Unknown argument x"));
  EXPECT_EQ(run({"FUNCTION", "LIST", "libraryname", "a"}), "*0\r\n");
}

TEST_F(ScriptCommandsTest, FunctionStatsKnowAnEngineWithoutLibraries) {
  const std::string counts =
      bulk("libraries_count") + integer(0) + bulk("functions_count") + integer(0);
  EXPECT_EQ(run({"FUNCTION", "STATS"}), "*4\r\n" + bulk("running_script") + kNull +
                                            bulk("engines") + "*2\r\n" + bulk("LUA") + "*4\r\n" +
                                            counts);
  run({"HELLO", "3"});
  EXPECT_EQ(run({"FUNCTION", "STATS"}), "%2\r\n" + bulk("running_script") + "_\r\n" +
                                            bulk("engines") + "%1\r\n" + bulk("LUA") + "%2\r\n" +
                                            counts);
}

TEST_F(ScriptCommandsTest, AFlushTakesOneMode) {
  EXPECT_EQ(run({"FUNCTION", "FLUSH"}), kOk);
  EXPECT_EQ(run({"FUNCTION", "FLUSH", "async"}), kOk);
  EXPECT_EQ(run({"FUNCTION", "flush", "a", "b"}),
            error("ERR unknown subcommand or wrong number of arguments for 'flush'. Try FUNCTION "
                  "HELP."));
  EXPECT_EQ(run({"SCRIPT", "FLUSH", "sync"}), kOk);
  EXPECT_EQ(run({"SCRIPT", "FLUSH", "a", "b"}),
            error("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
  EXPECT_EQ(run({"SCRIPT", "EXISTS"}),
            error("ERR wrong number of arguments for 'script|exists' command"));
}

}  // namespace
}  // namespace server
