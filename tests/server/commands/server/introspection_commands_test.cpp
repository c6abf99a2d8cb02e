// SPDX-License-Identifier: MIT
#include "server/commands/server/introspection_commands.h"

#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using IntrospectionCommandsTest = CommandTest;

TEST_F(IntrospectionCommandsTest, InfoHasTheTenElementsOfRedis) {
  EXPECT_EQ(
      run({"COMMAND", "INFO", "get", "nope"}),
      "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"
      "*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n"
      "+access\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
      "*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
      "$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n"
      "*0\r\n$-1\r\n");
}

TEST_F(IntrospectionCommandsTest, BareCommandListsWhatCountCounts) {
  const std::string count = run({"COMMAND", "COUNT"});
  EXPECT_TRUE(run({"COMMAND"}).starts_with("*" + count.substr(1)));
}

TEST_F(IntrospectionCommandsTest, KeysFollowTheRow) {
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"}), array({bulk("a"), bulk("b")}));
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "nope", "a"}), error(kInvalidCommand));
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "ECHO", "a"}), error(kNoKeyArguments));
  EXPECT_EQ(run({"COMMAND", "GETKEYSANDFLAGS", "SET", "a", "1"}),
            array({array({bulk("a"), array({"+OW\r\n", "+update\r\n"})})}));
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "MIGRATE", "h", "1", "", "0", "1", "AUTH2", "KEYS", "KEYS",
                 "KEYS", "a"}),
            array({bulk("a")}));
}

TEST_F(IntrospectionCommandsTest, ListFilters) {
  EXPECT_EQ(run({"COMMAND", "LIST", "FILTERBY", "PATTERN", "ec?o"}), array({bulk("echo")}));
  EXPECT_EQ(run({"COMMAND", "LIST", "FILTERBY", "ACLCAT", "nope"}), array({}));
  EXPECT_EQ(run({"COMMAND", "LIST", "FILTERBY", "MODULE"}), error(kSyntaxError));
}

TEST_F(IntrospectionCommandsTest, EveryCommandTellsItsComplexity) {
  for (const RegisteredCommand* command : registry_->commands()) {
    EXPECT_FALSE(command->row->complexity.empty()) << command->full_name;
    for (const RegisteredCommand* subcommand : command->subcommands) {
      EXPECT_FALSE(subcommand->row->complexity.empty()) << subcommand->full_name;
    }
  }
  EXPECT_NE(run({"COMMAND", "DOCS", "get"}).find(bulk("complexity") + bulk("O(1)")),
            std::string::npos);
}

TEST_F(IntrospectionCommandsTest, CommandsOfOurOwnHaveAGroupOfTheirOwn) {
  const auto in_group = [&](const char* name, std::string_view group) {
    return run({"COMMAND", "DOCS", name}).find(bulk("group") + bulk(group)) != std::string::npos;
  };
  EXPECT_TRUE(in_group("bf.add", "module"));
  EXPECT_TRUE(in_group("bf.del", "bloom-ext"));
  EXPECT_TRUE(in_group("get", "string"));
}

// As in RedisBloom, COMMAND INFO shows no tips for the commands BF.*, because each reply depends
// only on the keys that the command names.
TEST_F(IntrospectionCommandsTest, CommandsOfTheModuleCarryNoTips) {
  size_t count = 0;
  for (const RegisteredCommand* command : registry_->commands()) {
    if (!command->row->name.starts_with("bf.")) continue;
    EXPECT_EQ(command->row->tips, "") << command->full_name;
    const std::string info = run({"COMMAND", "INFO", command->full_name});
    EXPECT_NE(info.find("+module\r\n"), std::string::npos) << command->full_name;
    ++count;
  }
  EXPECT_GT(count, 10U);
}

TEST_F(IntrospectionCommandsTest, ModuleListNamesBf) {
  const std::string reply = run({"MODULE", "LIST"});
  EXPECT_NE(reply.find(bulk("name") + bulk("bf") + bulk("ver") + ":"), std::string::npos) << reply;
  const std::string version = reply.substr(reply.find(bulk("ver")) + bulk("ver").size() + 1);
  EXPECT_GE(std::stoi(version), 20820);
}

// A command that was never executed has no latency distribution, so INFO latencystats omits the
// command.
TEST_F(IntrospectionCommandsTest, LatencystatsNameWhatHasRun) {
  run({"PING"});
  const std::string reply = run({"INFO", "latencystats"});
  EXPECT_NE(reply.find("\r\nlatency_percentiles_usec_ping:p50="), std::string::npos) << reply;
  EXPECT_EQ(reply.find("_get:"), std::string::npos) << reply;
}

}  // namespace
}  // namespace server
