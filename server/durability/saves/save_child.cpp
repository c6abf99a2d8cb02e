// SPDX-License-Identifier: MIT
#include "server/durability/saves/save_child.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <system_error>

namespace server {
namespace {

// Returns the bytes in modified pages that this process shares with no other process.
uint64_t private_dirty_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  uint64_t kibibytes = 0;
  for (std::string word; file >> word;) {
    if (word == "Private_Dirty:") file >> kibibytes;
  }
  return kibibytes * 1024;
}

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

// Allocates the memory that the parent and the child share. Returns null if the system has none
// left.
SaveChild::Shared* SaveChild::share() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Shared;
}

core::Result<std::unique_ptr<SaveChild>> SaveChild::start_here(const core::Clock& clock,
                                                               const Work& work,
                                                               ChildDescriptors /*unused*/) {
  Shared* const shared = share();
  if (shared == nullptr) return core::Error{"ERR " + system_message(errno)};
  std::unique_ptr<SaveChild> child(new SaveChild(shared, ::getpid()));
  child->started_us_ = clock.monotonic_us();
  child->has_ended_ = true;
  shared->figures.may_begin = true;
  child->result_here_ = work(shared->figures);
  return child;
}

core::Result<std::unique_ptr<SaveChild>> SaveChild::start(const core::Clock& clock,
                                                          const Work& work,
                                                          ChildDescriptors descriptors) {
  Shared* const shared = share();
  if (shared == nullptr) return core::Error{"ERR " + system_message(errno)};
  auto arrays = std::make_unique<core::bloom::ArrayMemory::ChildGuard>();
  if (const int file = core::bloom::ArrayMemory::of_process().descriptor(); file >= 0) {
    descriptors.kept.push_back(file);
  }
  const int64_t start_us = clock.monotonic_us();
  const pid_t parent = ::getpid();
  const pid_t process_id = ::fork();
  if (process_id < 0) {
    const int error_number = errno;
    ::munmap(shared, sizeof(Shared));
    return core::Error{"ERR can't fork: " + system_message(error_number)};
  }
  if (process_id == 0) {
    // The descriptors are closed first, even if the parent is already dead, because the next server
    // waits until they are closed. Only then does the child ask for SIGKILL when its parent ends.
    // In the opposite order, SIGKILL could end the child before it closes the descriptors. The lock
    // could then be released while other descriptors are still open.
    auto done = close_unneeded(descriptors);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // If the parent ended before prctl(), the kernel never sends SIGKILL, so the child exits.
    if (::getppid() != parent) ::_exit(EXIT_FAILURE);
    std::signal(SIGTERM, SIG_DFL);
    // The child ignores SIGINT from the terminal, because the parent decides when the child ends.
    std::signal(SIGINT, SIG_IGN);
    if (done) done = work(shared->figures);
    shared->figures.copied_bytes = private_dirty_bytes();
    if (done) ::_exit(EXIT_SUCCESS);
    const std::string& message = done.error().message;
    const size_t size = std::min(message.size(), sizeof(shared->error) - 1);
    std::memcpy(shared->error, message.data(), size);
    ::_exit(EXIT_FAILURE);
  }
  arrays->finish_fork();
  std::unique_ptr<SaveChild> child(new SaveChild(shared, process_id));
  child->started_us_ = start_us;
  child->fork_us_ = clock.monotonic_us() - start_us;
  child->arrays_ = std::move(arrays);
  return child;
}

SaveChild::~SaveChild() {
  if (!has_ended_) {
    kill();
    while (::waitpid(process_id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::munmap(shared_, sizeof(Shared));
}

std::optional<core::Result<>> SaveChild::poll() {
  if (result_here_) return result_here_;
  int status = 0;
  const pid_t ended = ::waitpid(process_id_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  has_ended_ = true;
  arrays_.reset();
  if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
    return core::Result<>();
  }
  if (was_killed_) return core::Result<>(core::Error{"ERR it was stopped"});
  if (ended > 0 && WIFSIGNALED(status)) {
    return core::Result<>(
        core::Error{fmt::format("ERR it was ended by signal {}", WTERMSIG(status))});
  }
  return core::Result<>(core::Error{shared_->error[0] != '\0' ? std::string(shared_->error)
                                                              : "ERR it ended unexpectedly"});
}

void SaveChild::await_detached() const {
  constexpr useconds_t kPauseUs = 200;
  while (!result_here_ && !shared_->figures.is_detached) {
    siginfo_t info{};
    // WNOWAIT keeps the exit status, because SaveChild::poll() reads it later.
    const int asked =
        ::waitid(P_PID, static_cast<id_t>(process_id_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (asked != 0 || info.si_pid != 0) return;
    ::usleep(kPauseUs);
  }
}

void SaveChild::kill() {
  was_killed_ = true;
  if (!has_ended_) ::kill(process_id_, SIGKILL);
}

}  // namespace server
