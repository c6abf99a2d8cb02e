// SPDX-License-Identifier: MIT
#include "server/tools/run_tool.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/process/build_info.h"
#include "server/base/process/compatibility.h"
#include "tests/support/vectors.h"

namespace server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RunToolTest : public testing::Test {
 protected:
  // Runs the tool with these arguments. Returns the text on standard output, and stores the exit
  // code in `exit_code_`.
  std::string run(const std::vector<std::string>& arguments) {
    const CommandLine parsed = parse_command_line(arguments);
    EXPECT_EQ(parsed.usage_error, "");
    testing::internal::CaptureStdout();
    exit_code_ = run_tool(parsed.launch, Config(), arguments, HealthQuestion::kServes);
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  }

  static std::string path(const std::string& name) {
    return std::string(BLOOMERY_VECTORS) + "/" + name;
  }

  std::optional<int> exit_code_;
};

TEST_F(RunToolTest, VersionIsOneLine) {
  const std::string expected = version_text(kCompatibleRedisVersion, build_info()) + "\n";
  for (const char* option : {"--version", "-v"}) {
    EXPECT_EQ(run({option}), expected);
    EXPECT_EQ(exit_code_, EXIT_SUCCESS);
  }
  EXPECT_EQ(run({"--version", "--json"}),
            version_json(kCompatibleRedisVersion, build_info()) + "\n");
  EXPECT_EQ(exit_code_, EXIT_SUCCESS);
}

TEST_F(RunToolTest, HelpIsTheUsageText) {
  EXPECT_EQ(run({"--help"}), std::string(help_text()) + "\n");
  EXPECT_EQ(exit_code_, EXIT_SUCCESS);
}

TEST_F(RunToolTest, ChecksEndWithTheirVerdict) {
  const std::string log = "redisbloom/aof-preamble-yes-live/appendonlydir/";
  EXPECT_THAT(run({"--check-rdb", path(log + "appendonly.aof.1.base.rdb")}),
              HasSubstr("REDIS version 10"));
  EXPECT_EQ(exit_code_, EXIT_SUCCESS);
  EXPECT_NE(run({"--check-rdb", path("absent.rdb")}), "");
  EXPECT_EQ(exit_code_, EXIT_FAILURE);
  EXPECT_THAT(run({"--check-aof", path(log + "appendonly.aof.manifest")}),
              HasSubstr("The log is sound.\n"));
  EXPECT_EQ(exit_code_, EXIT_SUCCESS);
  EXPECT_THAT(run({"--check-aof", path("absent")}), HasSubstr("The log is NOT sound.\n"));
  EXPECT_EQ(exit_code_, EXIT_FAILURE);
}

TEST_F(RunToolTest, TruncationNeedsTimesInTheLog) {
  const std::string log = path("redisbloom/aof-preamble-yes-live/appendonlydir/");
  EXPECT_THAT(run({"--check-aof", log + "appendonly.aof.manifest", "--truncate-to-timestamp", "1"}),
              HasSubstr("The log has no #TS lines"));
  EXPECT_EQ(exit_code_, EXIT_FAILURE);
}

TEST_F(RunToolTest, ServingIsNoTool) {
  EXPECT_EQ(run({"--port", "7000"}), "");
  EXPECT_EQ(exit_code_, std::nullopt);
}

}  // namespace
}  // namespace server
