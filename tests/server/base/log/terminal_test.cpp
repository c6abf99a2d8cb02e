// SPDX-License-Identifier: MIT
//
// tests/system/operations/progress_test.py tests how the progress line and the log share a
// terminal.
#include "server/base/log/terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace server {
namespace {

TEST(Terminal, NothingIsShownWithoutOne) {
  if (::isatty(STDERR_FILENO) == 1) GTEST_SKIP() << "standard error is a terminal";
  testing::internal::CaptureStderr();
  show_on_terminal("Working", 0.5);
  clear_terminal("another work");
  { const auto terminal = hold_terminal(); }
  clear_terminal("Working");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(terminal_shows_log());
}

}  // namespace
}  // namespace server
