// SPDX-License-Identifier: MIT
#include "server/base/process/raw_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace server {
namespace {

TEST(RawReportTest, TextAndStackAreAppendedToTheFile) {
  const auto path =
      std::filesystem::temp_directory_path() / ("report-" + std::to_string(::getpid()) + ".log");
  std::ofstream(path) << "a line before\n";
  prepare_reports(path.string());
  {
    const ReportFile file;
    RawOutput out(file.descriptor());
    out << "text " << int64_t{-7} << " ";
    out.hexadecimal(255) << "\n";
    write_stack(out);
  }
  prepare_reports("");
  EXPECT_EQ(ReportFile().descriptor(), STDERR_FILENO);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text.starts_with("a line before\ntext -7 0xff\n")) << text;
  EXPECT_NE(text.find("server_base_tests"), std::string::npos) << text;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace server
