// SPDX-License-Identifier: MIT
#include "server/base/log/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "server/base/log/fatal_message.h"
#include "tests/server/base/config/config_fixture.h"

namespace server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Tests that redirect the log of the process. The destructor restores the log.
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

TEST_F(LogTest, FatalMessagesAreShownOnce) {
  const auto output_for = [](LogLevel level, const std::string& file) {
    EXPECT_TRUE(open_log(level, file));
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    report_fatal("the end");
    std::fflush(stdout);
    return std::pair{::testing::internal::GetCapturedStdout(),
                     ::testing::internal::GetCapturedStderr()};
  };
  const auto [out, error] = output_for(LogLevel::kNotice, "");
  EXPECT_THAT(out, EndsWith(" # the end\n"));
  EXPECT_EQ(error, "");
  const std::string path = directory_ + "/log";
  EXPECT_EQ(output_for(LogLevel::kNotice, path),
            (std::pair<std::string, std::string>{"", "the end\n"}));
  EXPECT_THAT(read(path), EndsWith(" # the end\n"));
  EXPECT_EQ(output_for(LogLevel::kNothing, ""),
            (std::pair<std::string, std::string>{"", "the end\n"}));
}

TEST_F(LogTest, NamesInOtherScriptsStayReadable) {
  const std::string path = directory_ + "/log";
  ASSERT_TRUE(open_log(LogLevel::kNotice, path));
  log_notice("Loading {}", "/data/gr\xc3\xbc\xc3\x9f/dump.rdb");
  flush_log();
  EXPECT_THAT(read(path), EndsWith("Loading /data/gr\xc3\xbc\xc3\x9f/dump.rdb\n"));
}

// Tests the renaming or removal of an open log file. Before each line, the log checks whether the
// path still names the open file.
class RotatedLogTest : public LogTest {
 protected:
  RotatedLogTest() { std::filesystem::create_directory(directory_ + "/logs"); }

  void open(std::chrono::milliseconds look_interval = std::chrono::milliseconds(0)) const {
    ASSERT_TRUE(open_log(LogLevel::kDebug, path_, look_interval));
  }

  const std::string path_ = directory_ + "/logs/log";
  const std::string old_path_ = path_ + ".1";
};

TEST_F(RotatedLogTest, ARenamedFileIsFollowedByANewOne) {
  open();
  log_notice("one");
  std::filesystem::rename(path_, old_path_);
  log_notice("two");
  log_notice("three");
  EXPECT_THAT(read(old_path_), EndsWith(" * one\n"));
  const std::string text = read(path_);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text, HasSubstr(" * two\n"));
  EXPECT_THAT(text, EndsWith(" * three\n"));
}

TEST_F(RotatedLogTest, RemovedFileIsCreatedAgain) {
  open();
  log_notice("one");
  std::filesystem::remove(path_);
  log_notice("two");
  EXPECT_THAT(read(path_), EndsWith(" * two\n"));
  EXPECT_THAT(read(path_), Not(HasSubstr("one")));
}

TEST_F(RotatedLogTest, AFileThatTookThePathIsAppendedTo) {
  open();
  log_notice("one");
  std::filesystem::rename(path_, old_path_);
  std::ofstream(path_) << "made by logrotate\n";
  log_notice("two");
  EXPECT_THAT(read(path_), StartsWith("made by logrotate\n"));
  EXPECT_THAT(read(path_), EndsWith(" * two\n"));
  EXPECT_THAT(read(old_path_), EndsWith(" * one\n"));
}

TEST_F(RotatedLogTest, BufferedLinesReachTheirOwnFile) {
  open();
  // Verbose lines are buffered; only notices and warnings are flushed immediately.
  log_verbose("one");
  std::filesystem::rename(path_, old_path_);
  log_verbose("two");
  flush_log();
  EXPECT_THAT(read(old_path_), EndsWith(" - one\n"));
  EXPECT_THAT(read(path_), EndsWith(" - two\n"));
}

TEST_F(RotatedLogTest, OldFileIsUsedWhileTheFolderIsMissing) {
  open();
  std::filesystem::rename(directory_ + "/logs", directory_ + "/moved");
  log_notice("one");
  EXPECT_THAT(read(directory_ + "/moved/log"), EndsWith(" * one\n"));
  std::filesystem::create_directory(directory_ + "/logs");
  log_notice("two");
  EXPECT_THAT(read(path_), EndsWith(" * two\n"));
  EXPECT_THAT(read(directory_ + "/moved/log"), EndsWith(" * one\n"));
}

TEST_F(LogTest, AFifoNeedsAReader) {
  const std::string path = directory_ + "/log";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto refused = open_log(LogLevel::kNotice, path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "Can't write a log: can't open '" + path +
          "': it is a socket or a FIFO without reader; logfile needs a regular file, a device "
          "or a pipe");
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(open_log(LogLevel::kNotice, path));
  log_notice("one");
  char text[200] = {};
  EXPECT_GT(::read(reader, text, sizeof text - 1), 0);
  EXPECT_THAT(text, EndsWith(" * one\n"));
  ::close(reader);
}

TEST_F(RotatedLogTest, OnlyRegularFilesAreOpened) {
  open();
  std::filesystem::rename(path_, old_path_);
  // No process reads the FIFO, so a blocking open would wait forever.
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  log_notice("one");
  EXPECT_THAT(read(old_path_), EndsWith(" * one\n"));
}

TEST_F(RotatedLogTest, PathIsCheckedOncePerInterval) {
  open(std::chrono::hours(1));
  std::filesystem::rename(path_, old_path_);
  log_notice("one");
  EXPECT_THAT(read(old_path_), EndsWith(" * one\n"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RotatedLogTest, ARelativePathIsThatOfTheStart) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_ + "/logs");
  const auto opened = open_log(LogLevel::kNotice, "log", std::chrono::milliseconds(0));
  std::filesystem::current_path(before);
  ASSERT_TRUE(opened);
  std::filesystem::rename(path_, old_path_);
  log_notice("one");
  EXPECT_THAT(read(path_), EndsWith(" * one\n"));
}

}  // namespace
}  // namespace server
