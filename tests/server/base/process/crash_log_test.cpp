// SPDX-License-Identifier: MIT
#include "server/base/process/crash_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "server/base/metrics/statistics.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

// Raises `signal` while another thread has executed one command and runs a second command.
void crash_by(int signal, const std::string& log_file) {
  static const std::string kFirst = "bf.add";
  static const std::string kSecond = "client|list";
  static Statistics statistics(2, 1);
  ThreadStatistics& thread = statistics.thread(1);
  thread.trail.record(thread.commands_processed.value(), kFirst);
  thread.commands_processed.add();
  thread.trail.record(thread.commands_processed.value(), kSecond);
  install_crash_log(log_file);
  const CrashTrails trails(statistics);
  std::raise(signal);
  std::_Exit(EXIT_SUCCESS);
}

TEST(CrashLogDeathTest, TellsTheSignalTheCommandsAndTheThreads) {
  if (support::kIsSanitized) GTEST_SKIP() << "the sanitizer reports crashes";
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
    EXPECT_EXIT(
        crash_by(signal, ""), testing::KilledBySignal(signal),
        "BLOOMERY CRASH REPORT(.|\n)*crashed by SIG(.|\n)*Stack(.|\n)*server_base_tests(.|\n)*"
        "io-1: client.list bf.add\n(.|\n)*leader's stream:\n(.|\n)*"
        "Threads:\n  [0-9]+ (.|\n)*END OF THE CRASH REPORT");
  }
}

TEST(CrashLogDeathTest, IsAppendedToTheLogFile) {
  if (support::kIsSanitized) GTEST_SKIP() << "the sanitizer reports crashes";
  const auto path =
      std::filesystem::temp_directory_path() / ("crash-" + std::to_string(::getpid()) + ".log");
  std::ofstream(path) << "a line before\n";
  EXPECT_EXIT(crash_by(SIGSEGV, path.string()), testing::KilledBySignal(SIGSEGV), "^$");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text.starts_with("a line before\n\n=== BLOOMERY CRASH REPORT")) << text;
  EXPECT_TRUE(text.ends_with("=== END OF THE CRASH REPORT ===\n")) << text;
  std::filesystem::remove(path);
}

volatile int depth_max = 1 << 30;

// Recurses deeper than any stack allows. `depth_max` is volatile, so that the compiler cannot
// remove the recursion.
int use_up(int depth) {
  volatile char frame[4096] = {};
  if (depth > depth_max) return 0;
  frame[0] = static_cast<char>(depth);
  return use_up(depth + 1) + frame[0];
}

TEST(CrashLogDeathTest, StackOverflowIsReported) {
  if (support::kIsSanitized) GTEST_SKIP() << "the sanitizer reports crashes";
  EXPECT_EXIT(
      {
        install_crash_log("");
        const CrashStack crash_stack;
        std::_Exit(use_up(0));
      },
      testing::KilledBySignal(SIGSEGV), "END OF THE CRASH REPORT");
}

TEST(CommandTrail, KeepsTheLastNames) {
  CommandTrail trail;
  EXPECT_EQ(trail.name(0), nullptr);
  const std::string names[2] = {"get", "set"};
  for (uint64_t i = 0; i < 40; ++i) trail.record(i, names[i % 2]);
  EXPECT_EQ(*trail.name(39), "set");
  EXPECT_EQ(*trail.name(38), "get");
}

}  // namespace
}  // namespace server
