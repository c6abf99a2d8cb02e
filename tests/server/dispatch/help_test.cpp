// SPDX-License-Identifier: MIT
#include "server/dispatch/help.h"

#include <gmock/gmock.h>

#include <string>

#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using HelpTest = CommandTest;

TEST_F(HelpTest, TheFirstLineNamesTheContainer) {
  EXPECT_THAT(run({"CONFIG", "HELP"}), HasSubstr("+CONFIG <subcommand> [<arg> [value] [opt] ...]. "
                                                 "Subcommands are:\r\n"));
}

TEST_F(HelpTest, EachSubcommandHasItsSyntaxAndSummary) {
  const std::string help = run({"CONFIG", "HELP"});
  EXPECT_THAT(help, HasSubstr("+SET (parameter value) ...\r\n"));
  EXPECT_THAT(help, HasSubstr("+RESETSTAT\r\n+    "));
  EXPECT_THAT(help, HasSubstr("+HELP\r\n+    Prints this help.\r\n"));
}

TEST_F(HelpTest, SummariesAreIndentedAndEndWithAStop) {
  const std::string help = run({"OBJECT", "HELP"});
  size_t summaries = 0;
  for (size_t at = help.find("+    "); at != std::string::npos; at = help.find("+    ", at + 1)) {
    EXPECT_EQ(help[help.find('\r', at) - 1], '.');
    ++summaries;
  }
  // HELP prints two lines for each subcommand, and one for the container command.
  EXPECT_THAT(help, StartsWith("*" + std::to_string(2 * summaries + 1) + "\r\n"));
}

TEST_F(HelpTest, EveryContainerAnswersInBothProtocols) {
  for (const char* const protocol : {"2", "3"}) {
    run({"HELLO", protocol});
    for (const char* const name : {"ACL", "CLIENT", "COMMAND", "CONFIG", "LATENCY", "MEMORY",
                                   "OBJECT", "PUBSUB", "SLOWLOG", "SCRIPT", "FUNCTION"}) {
      EXPECT_THAT(run({name, "help"}), StartsWith("*")) << name;
    }
  }
}

TEST_F(HelpTest, ItTakesNoWords) {
  EXPECT_THAT(run({"CONFIG", "HELP", "x"}), StartsWith("-ERR wrong number of arguments"));
}

TEST_F(HelpTest, RowHasCategoriesCommonToAllSiblings) {
  const RegisteredCommand* const config = registry_->find("config");
  ASSERT_NE(config, nullptr);
  const Command row = help_row(*config->row);
  EXPECT_EQ(row.name, "help");
  EXPECT_EQ(row.arity, 2);
  for (const Command& subcommand : config->row->subcommands) {
    EXPECT_EQ(row.categories & ~subcommand.categories, 0U) << subcommand.name;
  }
}

}  // namespace
}  // namespace server
