// SPDX-License-Identifier: MIT
#include "server/base/process/daemon.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>

namespace server {
namespace {

// Returns the exit status of a process that starts this daemon.
int status_of_starter(const std::function<void(Daemon&)>& run_daemon) {
  const pid_t starter = ::fork();
  if (starter == 0) {
    Daemon daemon;
    const auto detached = daemon.detach();
    if (!detached) ::_exit(99);
    if (*detached) ::_exit(**detached);
    run_daemon(daemon);
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(starter, &status, 0), starter);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(DaemonTest, ReadyDaemonLetsItsStarterGo) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  EXPECT_EQ(status_of_starter([&](Daemon& daemon) {
              daemon.become_silent();
              // The daemon continues after the test has seen the exit of the starting process.
              ::close(pipe[1]);
              char end = 0;
              (void)!::read(pipe[0], &end, 1);
              ::_exit(7);
            }),
            0);
  ::close(pipe[1]);
  ::close(pipe[0]);
}

TEST(DaemonTest, StarterHasTheStatusOfADaemonThatEnds) {
  EXPECT_EQ(status_of_starter([](Daemon&) { ::_exit(7); }), 7);
  EXPECT_EQ(status_of_starter([](Daemon&) { ::_exit(0); }), 0);
}

TEST(DaemonTest, StarterOfAKilledDaemonFails) {
  EXPECT_EQ(status_of_starter([](Daemon&) { ::raise(SIGKILL); }), 1);
}

TEST(DaemonTest, DaemonHasASessionOfItsOwn) {
  EXPECT_EQ(status_of_starter([](Daemon&) { ::_exit(::getsid(0) == ::getpid() ? 5 : 6); }), 5);
}

TEST(DaemonTest, ProcessThatIsNoDaemonKeepsItsOutput) {
  Daemon none;
  none.become_silent();
  EXPECT_GE(::write(STDERR_FILENO, "", 0), 0);
}

}  // namespace
}  // namespace server
