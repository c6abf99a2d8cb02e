// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <chrono>
#include <string>

#include "server/base/config/config.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

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
  EXPECT_EQ(client_->last_result.awaited, nullptr);
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

}  // namespace
}  // namespace server
