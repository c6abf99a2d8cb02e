// SPDX-License-Identifier: MIT
#include "server/durability/saves/child_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>

namespace server {
namespace {

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

// Makes all later calls of close_range() fail with ENOSYS, as on a kernel that lacks this system
// call.
bool refuse_close_range() {
  std::array<sock_filter, 4> rules = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{rules.size(), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Evaluates the condition in a forked process. Returns its result.
bool holds_in_child(const std::function<bool()>& condition) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(condition() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ChildDescriptorsTest : public ::testing::Test {
 protected:
  ChildDescriptorsTest() {
    for (int& descriptor : opened_) descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  ~ChildDescriptorsTest() override {
    for (const int descriptor : opened_) ::close(descriptor);
  }
  // Calls close_unneeded() so that it must keep opened_[1] and opened_[3]. Returns whether it has
  // closed exactly the other elements of `opened_`.
  bool closes_the_others() const {
    return close_unneeded({{opened_[3], opened_[1]}, opened_[4]}) && !is_open(opened_[0]) &&
           is_open(opened_[1]) && !is_open(opened_[2]) && is_open(opened_[3]) &&
           !is_open(opened_[4]) && !is_open(opened_[5]) && is_open(STDERR_FILENO);
  }

  std::array<int, 6> opened_{};
};

TEST_F(ChildDescriptorsTest, ClosesAllButTheKeptOnes) {
  EXPECT_TRUE(holds_in_child([this] { return closes_the_others(); }));
}

TEST_F(ChildDescriptorsTest, ClosesThemWhereCloseRangeIsRefused) {
  EXPECT_TRUE(holds_in_child([this] {
    return refuse_close_range() && ::close_range(opened_[0], opened_[0], 0) != 0 &&
           is_open(opened_[0]) && closes_the_others();
  }));
}

}  // namespace
}  // namespace server
