// SPDX-License-Identifier: MIT
#include "core/thread_team.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "tests/support/sanitized.h"

namespace core {
namespace {

TEST(ThreadTeam, EachMemberRunsOncePerRound) {
  for (const unsigned size : {1U, 2U, 5U}) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> done(size, 0);
    for (int round = 0; round < 100; ++round) {
      team.run([&](unsigned member) { ++done[member]; });
    }
    EXPECT_EQ(done, std::vector<int>(size, 100));
  }
}

TEST(ThreadTeam, TaskSeesWritesOfTheTaskBefore) {
  ThreadTeam team(4);
  std::vector<uint64_t> sums(4, 1);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> before = sums;
    team.run([&](unsigned member) { sums[member] = before[(member + 1) % 4] + member; });
  }
  uint64_t model[4] = {1, 1, 1, 1};
  for (int round = 0; round < 20; ++round) {
    const uint64_t first = model[0];
    for (unsigned i = 0; i < 4; ++i) model[i] = (i == 3 ? first : model[i + 1]) + i;
  }
  EXPECT_EQ(sums, std::vector<uint64_t>(model, model + 4));
}

TEST(ThreadTeam, MemberExceptionReachesTheCaller) {
  ThreadTeam team(3);
  for (unsigned thrower = 0; thrower < 3; ++thrower) {
    const auto task = [&](unsigned member) {
      if (member == thrower) throw std::runtime_error("no");
    };
    EXPECT_THROW(team.run(task), std::runtime_error);
  }
  std::atomic<int> count{0};
  team.run([&](unsigned /*member*/) { ++count; });
  EXPECT_EQ(count, 3);
}

// The stacks of further threads do not fit into the address space that is left.
void end_with_a_small_team() {
  constexpr rlim_t kSpareBytes = rlim_t{64} << 20;
  constexpr unsigned kWanted = 1000;
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t limit_bytes = pages * static_cast<rlim_t>(::getpagesize()) + kSpareBytes;
  const rlimit limit{limit_bytes, limit_bytes};
  ::setrlimit(RLIMIT_AS, &limit);
  std::atomic<unsigned> count{0};
  unsigned size = 0;
  {
    ThreadTeam team(kWanted);
    size = team.size();
    team.run([&](unsigned /*member*/) { ++count; });
  }
  std::_Exit(size < kWanted && count == size ? EXIT_SUCCESS : EXIT_FAILURE);
}

TEST(ThreadTeam, IsSmallerIfThreadsCannotStart) {
  if (support::kIsSanitized) GTEST_SKIP() << "a sanitizer needs the whole address space";
  EXPECT_EXIT(end_with_a_small_team(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

}  // namespace
}  // namespace core
