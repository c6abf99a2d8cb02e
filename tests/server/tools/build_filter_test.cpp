// SPDX-License-Identifier: MIT
#include "server/tools/build_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/tools/run_tool.h"

namespace server {
namespace {

// Creates a directory, and redirects standard input to a file of items.
class BuildFilterTest : public testing::Test {
 protected:
  BuildFilterTest() : stdin_(::dup(STDIN_FILENO)) {
    std::string name = (std::filesystem::temp_directory_path() / "build-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    std::ofstream(directory_ / "items") << "a\nb\na\n";
    read_from("items");
  }
  ~BuildFilterTest() override {
    ::dup2(stdin_, STDIN_FILENO);
    ::close(stdin_);
    std::filesystem::remove_all(directory_);
  }
  void read_from(const std::string& name) {
    const int file = ::open((directory_ / name).c_str(), O_RDONLY);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
  }
  int build(const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"--build-filter", (directory_ / "out.rdb").string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto exit_code =
        run_tool(Launch::kBuildFilter, Config(), arguments, HealthQuestion::kServes);
    printed_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return exit_code.value_or(-1);
  }

  const int stdin_;
  std::filesystem::path directory_;
  std::string printed_;
  std::string error_;
};

TEST_F(BuildFilterTest, TellsWhatItHasBuilt) {
  EXPECT_EQ(build({"--error", "0.01", "--key", "seen"}), 0) << error_;
  EXPECT_NE(printed_.find("key seen, layout native-2, items 2 of 3 read, capacity 3"),
            std::string::npos)
      << printed_;
  EXPECT_EQ(error_, "") << "no progress without a terminal";
  EXPECT_TRUE(std::filesystem::exists(directory_ / "out.rdb"));
}

TEST_F(BuildFilterTest, SaysInOneLineWhyItHasNot) {
  EXPECT_EQ(build({"--error", "2"}), 1);
  EXPECT_EQ(error_, "bloomery-server: --error takes a number between 0 and 1, not '2'\n");
  read_from(".");
  EXPECT_EQ(build({"--error", "0.1"}), 1);
  EXPECT_EQ(error_, "bloomery-server: can't read 'standard input': Is a directory\n");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out.rdb"));
  EXPECT_EQ(printed_, "");
}

}  // namespace
}  // namespace server
