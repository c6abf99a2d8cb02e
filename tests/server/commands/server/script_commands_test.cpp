// SPDX-License-Identifier: MIT
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

}  // namespace
}  // namespace server
