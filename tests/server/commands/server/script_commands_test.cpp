// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "protocol/error_texts.h"
#include "server/base/process/server_state.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ScriptCommandsTest = CommandTest;

TEST_F(ScriptCommandsTest, NoScriptExists) {
  EXPECT_EQ(run({"SCRIPT", "EXISTS", "a", "b"}), array({integer(0), integer(0)}));
  EXPECT_EQ(run({"SCRIPT", "FLUSH"}), kOk);
  EXPECT_EQ(run({"SCRIPT", "FLUSH", "async"}), kOk);
  EXPECT_THAT(run({"SCRIPT", "FLUSH", "now"}), is_error("ERR", "SCRIPT FLUSH"));
}

TEST_F(ScriptCommandsTest, NoFunctionExists) {
  EXPECT_EQ(run({"FUNCTION", "LIST", "LIBRARYNAME", "*", "WITHCODE"}), "*0\r\n");
  EXPECT_THAT(run({"FUNCTION", "LIST", "WITHCODE", "WITHCODE"}), is_error("ERR", "WITHCODE"));
  EXPECT_THAT(run({"FUNCTION", "LIST", "LIBRARYNAME"}), is_error("ERR", "library name"));
  EXPECT_EQ(run({"FUNCTION", "FLUSH", "SYNC"}), kOk);
  EXPECT_THAT(run({"FUNCTION", "FLUSH", "x"}), is_error("ERR", "FUNCTION FLUSH"));
  EXPECT_EQ(state_.changes.load(), 0U) << "a flush of nothing changes nothing";
}

TEST_F(ScriptCommandsTest, NothingRuns) {
  const auto nothing = is_error("NOTBUSY", "scripts");
  EXPECT_THAT(run({"SCRIPT", "KILL"}), nothing);
  EXPECT_THAT(run({"FUNCTION", "KILL"}), nothing);
}

TEST_F(ScriptCommandsTest, CommandsThatRunScriptsAreUnknown) {
  EXPECT_TRUE(run({"EVAL", "return 1", "0"}).starts_with("-ERR unknown command 'EVAL'"));
  EXPECT_TRUE(run({"SCRIPT", "LOAD", "x"}).starts_with("-ERR unknown subcommand 'LOAD'"));
}

TEST_F(ScriptCommandsTest, FunctionListChecksItsOptions) {
  EXPECT_EQ(run({"FUNCTION", "LIST"}), "*0\r\n");
  EXPECT_THAT(run({"FUNCTION", "LIST", "x"}), is_error("ERR", "argument x"));
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
            error(protocol::wrong_subcommand("flush", "FUNCTION")));
  EXPECT_EQ(run({"SCRIPT", "FLUSH", "sync"}), kOk);
  EXPECT_THAT(run({"SCRIPT", "FLUSH", "a", "b"}), is_error("ERR", "SCRIPT FLUSH"));
  EXPECT_EQ(run({"SCRIPT", "EXISTS"}), error(protocol::wrong_arity("script|exists")));
}

}  // namespace
}  // namespace server
