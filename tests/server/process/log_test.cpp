// SPDX-License-Identifier: MIT
#include "server/process/log.h"

#include <gmock/gmock.h>

#include "tests/server/config/config_fixture.h"

namespace server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The log of the process is put back afterwards.
class LogTest : public ConfigTest {
 protected:
  ~LogTest() override {
    spdlog::set_default_logger(before_);
    spdlog::set_level(level_);
  }

 private:
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  spdlog::level::level_enum level_ = spdlog::get_level();
};

TEST_F(LogTest, TextFromOutsideStaysOnItsLine) {
  const std::string path = directory_ + "/log";
  ASSERT_TRUE(open_log(LogLevel::kNotice, path));
  log_notice("The leader says: {}", "no\r\n1:M 20 Nov 2026 09:37:03.456 * all is well\x1b[2J");
  flush_log();
  const std::string text = read(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, HasSubstr(" * The leader says: no\\r\\n1:M 20 Nov"));
  EXPECT_THAT(text, EndsWith("all is well\\x1b[2J\n"));
}

TEST_F(LogTest, NamesInOtherScriptsStayReadable) {
  const std::string path = directory_ + "/log";
  ASSERT_TRUE(open_log(LogLevel::kNotice, path));
  log_notice("Loading {}", "/data/gr\xc3\xbc\xc3\x9f/dump.rdb");
  flush_log();
  EXPECT_THAT(read(path), EndsWith("Loading /data/gr\xc3\xbc\xc3\x9f/dump.rdb\n"));
}

}  // namespace
}  // namespace server
