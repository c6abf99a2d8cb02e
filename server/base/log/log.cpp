// SPDX-License-Identifier: MIT
#include "server/base/log/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/printable.h"
#include "persistence/files/open_file.h"
#include "persistence/files/posix_io.h"
#include "server/base/log/fatal_message.h"
#include "server/base/log/recent_warnings.h"
#include "server/base/log/terminal.h"

namespace server {
namespace {

// Formats the field %* of the log pattern: the level as one character, as in Redis' log.
class LevelMark final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    constexpr std::string_view kLevelMarks = ".-*###";
    out.push_back(kLevelMarks[std::min<size_t>(message.level, kLevelMarks.size() - 1)]);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelMark>();
  }
};

// Formats the field %v of the log pattern: the text of the message. Escapes control characters,
// because the text may contain a file name or data from a peer.
class PrintableText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text =
        core::printable(std::string_view(message.payload.data(), message.payload.size()));
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableText>();
  }
};

// TerminalSink writes to standard output. While it writes, no progress line is shown, because both
// may appear on the same terminal.
class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const auto terminal = hold_terminal();
    (void)std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }
  void flush_() override { std::fflush(stdout); }
};

using persistence::FileKinds;

struct CloseLogFile {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using LogFilePtr = std::unique_ptr<std::FILE, CloseLogFile>;

// Opens the file for appending. As with fopen(), other users may read the log, so that their tools
// work.
core::Result<LogFilePtr> open_log_file(const std::string& path, FileKinds kinds) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  auto opened = persistence::open_file({path, "logfile"}, kFlags, kinds, 0666);
  if (!opened) return opened.error();
  LogFilePtr file(::fdopen(opened->get(), "a"));
  if (file == nullptr) return persistence::io_failure("open", path, errno);
  static_cast<void>(opened->release());
  return {boost::system::in_place_value, std::move(file)};
}

// LogFileSink writes to a file that log rotation may rename or remove.
class LogFileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  LogFileSink(const std::string& path, LogFilePtr file, std::chrono::milliseconds look_interval)
      : file_(std::move(file)), look_interval_(look_interval) {
    // The path is made absolute, because CONFIG SET dir changes the meaning of a relative path.
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error);
    path_ = error ? path : absolute.string();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    follow_path();
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()) fail("writing");
  }
  void flush_() override {
    if (std::fflush(file_.get()) != 0) fail("flushing");
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Called when an operation on the log file failed. Throws an exception, which spdlog catches and
  // prints on standard error at most once a second.
  [[noreturn]] void fail(std::string_view what) const {
    const int error = errno;
    spdlog::throw_spdlog_ex(fmt::format("Failed {} the log file '{}'", what, path_), error);
  }

  void follow_path() {
    const auto now = Clock::now();
    if (now - looked_at_ < look_interval_) return;
    looked_at_ = now;
    if (!is_moved()) return;
    // If the new file cannot be opened, logging continues in the old one.
    if (auto opened = open_log_file(path_, FileKinds::kRegular)) file_ = *std::move(opened);
  }

  bool is_moved() const {
    struct stat there {};
    if (::stat(path_.c_str(), &there) != 0) return true;
    struct stat here {};
    if (::fstat(::fileno(file_.get()), &here) != 0) return false;
    return there.st_dev != here.st_dev || there.st_ino != here.st_ino;
  }

  std::string path_;
  LogFilePtr file_;
  const std::chrono::milliseconds look_interval_;
  Clock::time_point looked_at_ = Clock::now();
};

// True if the log is written to standard output. False until open_log() is called, because no log
// is open before that call.
std::atomic<bool> is_on_standard_output{false};

spdlog::sink_ptr standard_output() {
  if (terminal_shows_log()) return std::make_shared<TerminalSink>();
  return std::make_shared<spdlog::sinks::stdout_sink_mt>();
}

}  // namespace

core::Result<> open_log(LogLevel level, const std::string& file,
                        std::chrono::milliseconds look_interval) {
  spdlog::sink_ptr sink;
  if (file.empty()) {
    sink = standard_output();
    is_on_standard_output = true;
  } else {
    is_on_standard_output = false;
    auto opened = open_log_file(file, FileKinds::kStreams);
    if (!opened) {
      return core::Error{
          fmt::format("Can't write a log: {}", core::without_code(opened.error().message))};
    }
    sink = std::make_shared<LogFileSink>(file, *std::move(opened), look_interval);
  }
  auto logger = std::make_shared<spdlog::logger>(
      "bloomery", spdlog::sinks_init_list{recent_warnings_sink(), std::move(sink)});
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelMark>('*').add_flag<PrintableText>('v').set_pattern(
      "%P:M %d %b %Y %H:%M:%S.%e %* %v");
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  set_log_level(level);
  return {};
}

void set_log_level(LogLevel level) {
  constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                  spdlog::level::warn, spdlog::level::off};
  spdlog::set_level(kLevels[static_cast<size_t>(level)]);
}

void flush_log() {
  spdlog::default_logger_raw()->flush();
}

void report_fatal(std::string_view message) {
  log_error("{}", message);
  flush_log();
  const bool is_shown = is_on_standard_output && spdlog::should_log(spdlog::level::err);
  if (!is_shown) fmt::print(stderr, "{}\n", message);
}

}  // namespace server
