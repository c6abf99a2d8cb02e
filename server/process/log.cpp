// SPDX-License-Identifier: MIT
#include "server/process/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <system_error>

#include "core/printable.h"
#include "server/process/progress/terminal.h"

namespace server {
namespace {

// %* in the pattern: Redis' one-character level.
class LevelMark final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    constexpr std::string_view kMarks = ".-*###";
    out.push_back(kMarks[std::min<size_t>(message.level, kMarks.size() - 1)]);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelMark>();
  }
};

// %v in the pattern: the text, which may quote a peer or name a file.
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

// Standard output where a progress line may stand.
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

spdlog::sink_ptr standard_output() {
  if (terminal_shows_log()) return std::make_shared<TerminalSink>();
  return std::make_shared<spdlog::sinks::stdout_sink_mt>();
}

}  // namespace

core::Result<> open_log(LogLevel level, const std::string& file) {
  // The sink would make missing directories and call every failure one of its own.
  if (std::FILE* const opened = file.empty() ? nullptr : std::fopen(file.c_str(), "a")) {
    std::fclose(opened);
  } else if (!file.empty()) {
    return core::Error{fmt::format("Can't open the log file '{}': {}", file,
                                   std::generic_category().message(errno))};
  }
  try {
    std::shared_ptr<spdlog::logger> logger;
    if (file.empty()) {
      logger = std::make_shared<spdlog::logger>("bloomery", standard_output());
    } else {
      logger = std::make_shared<spdlog::logger>(
          "bloomery", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    }
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<LevelMark>('*').add_flag<PrintableText>('v').set_pattern(
        "%P:M %d %b %Y %H:%M:%S.%e %* %v");
    logger->set_formatter(std::move(formatter));
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    return core::Error{fmt::format("Can't open the log file '{}': {}", file, error.what())};
  }
  set_log_level(level);
  return {};
}

void set_log_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::set_level(spdlog::level::trace);
    case LogLevel::kVerbose:
      return spdlog::set_level(spdlog::level::debug);
    case LogLevel::kNotice:
      return spdlog::set_level(spdlog::level::info);
    case LogLevel::kWarning:
      return spdlog::set_level(spdlog::level::warn);
    case LogLevel::kNothing:
      return spdlog::set_level(spdlog::level::off);
  }
}

void flush_log() {
  spdlog::default_logger_raw()->flush();
}

}  // namespace server
