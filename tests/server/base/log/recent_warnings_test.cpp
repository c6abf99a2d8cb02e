// SPDX-License-Identifier: MIT
#include "server/base/log/recent_warnings.h"

#include <gtest/gtest.h>

#include "server/base/log/log.h"
#include "tests/support/temp_directory.h"

namespace server {
namespace {

class RecentWarningsTest : public ::testing::Test {
 protected:
  RecentWarningsTest() { EXPECT_TRUE(open_log(LogLevel::kNotice, directory_.path() + "/log")); }
  ~RecentWarningsTest() override { spdlog::set_default_logger(before_); }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  const support::TempDirectory directory_;
};

TEST_F(RecentWarningsTest, KeepsWarningsAndErrors) {
  log_warning("first {}", 1);
  log_notice("not this");
  log_error("second\nline");
  const auto lines = recent_warnings();
  ASSERT_GE(lines.size(), 2U);
  EXPECT_TRUE(lines[lines.size() - 2].ends_with(" # first 1")) << lines[lines.size() - 2];
  EXPECT_TRUE(lines.back().ends_with(" # second\\nline")) << lines.back();
}

TEST_F(RecentWarningsTest, TheNumberAndTheirBytesAreBounded) {
  for (size_t i = 0; i < 3 * kRecentWarningsMax; ++i) {
    log_warning("{} {}", i, std::string(10'000, 'x'));
  }
  const auto lines = recent_warnings();
  EXPECT_EQ(lines.size(), kRecentWarningsMax);
  for (const std::string& line : lines) EXPECT_LE(line.size(), kRecentWarningBytesMax);
  EXPECT_NE(lines.back().find(" # 299 x"), std::string::npos) << lines.back().substr(0, 80);
}

}  // namespace
}  // namespace server
