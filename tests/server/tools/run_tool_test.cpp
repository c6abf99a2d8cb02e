// SPDX-License-Identifier: MIT
#include "server/tools/run_tool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "persistence/files/open_file.h"
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

// Every path that leads to a log finds the lock of the server that uses it.
TEST_F(RunToolTest, LogOfARunningServerIsNotChanged) {
  namespace fs = std::filesystem;
  std::string pattern = testing::TempDir() + "bloomery_run_tool_XXXXXX";
  const fs::path root = ::mkdtemp(pattern.data());
  const fs::path log = root / "data/appendonlydir";
  fs::create_directories(root / "data");
  fs::copy(path("redisbloom/aof-preamble-yes-live/appendonlydir"), log);
  fs::create_directory_symlink(log, root / "link");
  const std::string torn = "*3\r\n$3\r\nSET\r\n";
  const auto size = fs::file_size(log / "appendonly.aof.1.incr.aof");
  std::ofstream(log / "appendonly.aof.1.incr.aof", std::ios::app) << torn;
  std::ofstream(root / "data/.bloomery.lock").close();
  const std::string manifest = "appendonly.aof.manifest";
  const auto fix = [&](const fs::path& file) {
    return run({"--check-aof", (file / manifest).string(), "--fix"});
  };
  {
    const auto server = persistence::open_file((root / "data/.bloomery.lock").string(), O_RDWR);
    ASSERT_EQ(::flock(server->get(), LOCK_EX | LOCK_NB), 0);
    for (const fs::path& way : {log, root / "link", log / "..//appendonlydir"}) {
      EXPECT_THAT(fix(way), HasSubstr("end it first")) << way;
      EXPECT_EQ(exit_code_, EXIT_FAILURE);
    }
    EXPECT_THAT(run({"--check-aof", (log / manifest).string()}), HasSubstr("--fix would cut off"));
    EXPECT_EQ(fs::file_size(log / "appendonly.aof.1.incr.aof"), size + torn.size());
  }
  EXPECT_THAT(fix(log), HasSubstr("The log is sound.\n"));
  EXPECT_EQ(exit_code_, EXIT_SUCCESS);
  EXPECT_EQ(fs::file_size(log / "appendonly.aof.1.incr.aof"), size);
  // A copy has no lock file, and gets none.
  fs::remove(root / "data/.bloomery.lock");
  EXPECT_THAT(fix(log), HasSubstr("The log is sound.\n"));
  EXPECT_FALSE(fs::exists(root / "data/.bloomery.lock"));
  fs::remove_all(root);
}

TEST_F(RunToolTest, ServingIsNoTool) {
  EXPECT_EQ(run({"--port", "7000"}), "");
  EXPECT_EQ(exit_code_, std::nullopt);
}

}  // namespace
}  // namespace server
