// SPDX-License-Identifier: MIT
#include "server/base/process/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace server {
namespace {

core::Error failure(std::string_view act) {
  return {fmt::format("Can't become a daemon: can't {}: {}", act,
                      std::generic_category().message(errno))};
}

// Waits until the daemon is ready or has ended. Returns the exit status for the foreground process,
// which called this function.
int await_daemon(pid_t daemon, int report) {
  char byte = 0;
  ssize_t got = -1;
  do {
    got = ::read(report, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) return EXIT_SUCCESS;
  int status = 0;
  while (::waitpid(daemon, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fmt::print(stderr, "The server was ended by signal {} before it was ready\n", WTERMSIG(status));
  return EXIT_FAILURE;
}

}  // namespace

void open_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1) continue;
    // open() returns the lowest free descriptor, so /dev/null gets the descriptors of the missing
    // standard streams. Standard input can then not be read, as if it were still missing. An empty
    // input would seem to be complete.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDWR;
    if (::open("/dev/null", mode) != descriptor) return;
  }
}

core::Result<std::optional<int>> Daemon::detach() {
  null_ = core::Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_.is_open()) return failure("open /dev/null");
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return failure("make a pipe");
  const core::Descriptor answer(pipe[0]);
  report_ = core::Descriptor(pipe[1]);
  std::fflush(nullptr);
  const pid_t daemon = ::fork();
  if (daemon != 0) {
    // The starter closes the pipe's writing end, because reading the pipe must end when the daemon
    // ends.
    (void)report_.close();
    if (daemon < 0) return failure("fork");
    return std::optional(await_daemon(daemon, answer.get()));
  }
  ::setsid();
  ::dup2(null_.get(), STDIN_FILENO);
  return std::optional<int>();
}

void Daemon::become_silent() {
  if (!report_.is_open()) return;
  std::fflush(nullptr);
  ::dup2(null_.get(), STDOUT_FILENO);
  ::dup2(null_.get(), STDERR_FILENO);
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(report_.get(), &byte, 1);
  (void)report_.close();
}

}  // namespace server
