// SPDX-License-Identifier: MIT
//
// bloomery-server: reads the configuration, opens the log, builds the server and runs it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/log/fatal_message.h"
#include "server/base/log/log.h"
#include "server/base/process/crash_log.h"
#include "server/base/process/daemon.h"
#include "server/base/process/pid_file.h"
#include "server/server.h"
#include "server/tools/run_tool.h"

namespace {

int fail(std::string_view message) {
  fmt::print(stderr, "{}\n", message);
  return EXIT_FAILURE;
}

int fail_with_log(std::string_view message) {
  server::report_fatal(message);
  return EXIT_FAILURE;
}

int serve(server::Config& config, server::Daemon& daemon) {
  for (const std::string& warning : config.take_warnings()) server::log_warning("{}", warning);
  server::Server server(config, [&daemon] { daemon.become_silent(); });
  if (auto started = server.start(); !started) return fail_with_log(started.error().message);
  const server::PidFile pid_file(config.text(server::OptionId::kPidFile));
  const int exit_code = server.run();
  server::flush_log();
  // An operator who starts the server by hand may not see the log, so the error is also written to
  // standard error.
  const std::string log_file = config.text(server::OptionId::kLogFile);
  if (exit_code != EXIT_SUCCESS && !log_file.empty()) {
    fmt::print(stderr, "The server has ended with an error; see its log: {}\n", log_file);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  server::open_standard_streams();
  // SIGPIPE is ignored, because writing to a socket that the peer has closed must not end the
  // process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  // SIGXFSZ is ignored, so that a write beyond the file size limit fails with an error, as on a
  // full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // The process that started the server may have ignored SIGCHLD. Then the exit status of a child
  // process that saves would be lost.
  std::signal(SIGCHLD, SIG_DFL);
  std::vector<const char*> words(argv, argv + argc);
  const server::HealthQuestion question = server::take_health_question(words);
  server::Config config;
  const auto launch = config.load(static_cast<int>(words.size()), words.data());
  if (!launch) return fail(launch.error().message);
  // run_tool() gets the original arguments, because take_health_question() may have removed one
  // from `words`.
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (const auto exit_code = server::run_tool(*launch, config, arguments, question)) {
    return *exit_code;
  }
  if (::chdir(config.directory().c_str()) != 0) {
    return fail(fmt::format("Can't chdir to '{}': {}", config.directory(), std::strerror(errno)));
  }
  const server::LogLevel log_level{config.integer(server::OptionId::kLogLevel)};
  const std::string log_file = config.text(server::OptionId::kLogFile);
  if (auto opened = server::open_log(log_level, log_file); !opened) {
    return fail(opened.error().message);
  }
  server::Daemon daemon;
  if (config.flag(server::OptionId::kDaemonize)) {
    const auto detached = daemon.detach();
    if (!detached) return fail(detached.error().message);
    if (*detached) return **detached;
  }
  server::log_notice("Bloomery {} is starting, {} I/O threads. Port: {} PID: {}", BLOOMERY_VERSION,
                     config.io_thread_count(), config.port(), getpid());
  server::install_crash_log(log_file);
  const server::CrashStack crash_stack;
  try {
    return serve(config, daemon);
  } catch (const std::exception& error) {
    return fail_with_log(fmt::format("Ended by an unexpected error: {}", error.what()));
  }
}
