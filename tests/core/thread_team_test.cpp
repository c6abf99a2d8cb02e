// SPDX-License-Identifier: MIT
#include "core/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

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

}  // namespace
}  // namespace core
