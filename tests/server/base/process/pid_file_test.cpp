// SPDX-License-Identifier: MIT
#include "server/base/process/pid_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "tests/support/captured_log.h"
#include "tests/support/temp_directory.h"

namespace server {
namespace {

TEST(PidFile, ExistsWhileTheServerRuns) {
  const support::TempDirectory directory;
  const std::string path = directory.path() + "/server.pid";
  std::ofstream(path) << "a longer text of an earlier process\n";
  std::optional<PidFile> file(path);
  std::ifstream stream(path);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(text, fmt::format("{}\n", getpid()));
  file.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PidFile, UnwritablePathIsLogged) {
  const support::TempDirectory directory;
  const CapturedLog log;
  const std::string path = directory.path() + "/missing/server.pid";
  { const PidFile file(path); }
  EXPECT_EQ(log.count("No PID file: "), 1);
  EXPECT_EQ(log.count(path), 1);
}

TEST(PidFile, EmptyPathMeansNoFile) {
  const CapturedLog log;
  const PidFile file("");
  EXPECT_EQ(log.text(), "");
}

}  // namespace
}  // namespace server
