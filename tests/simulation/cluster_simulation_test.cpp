// SPDX-License-Identifier: MIT
//
// Runs ClusterModel with many seeds. BLOOMERY_SIMULATION_RUNS is the number of runs,
// BLOOMERY_SIMULATION_SEED the seed of the first run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulation/cluster_model.h"

namespace simulation {
namespace {

#if defined(__OPTIMIZE__) && !defined(BLOOMERY_ASAN) && !defined(BLOOMERY_TSAN)
constexpr uint64_t kRuns = 1'000;
#else
constexpr uint64_t kRuns = 40;
#endif
// The runs are divided into this number of tests, which can run in parallel.
constexpr uint64_t kParts = 4;
constexpr uint64_t kMutatedRunsMax = 500;
constexpr uint64_t kRunsWithoutPromises = 50;
constexpr const char* kTwoLeaders = "replies in epoch";

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t first_seed() {
  return number_of("BLOOMERY_SIMULATION_SEED", 1);
}

class ClusterSimulation : public testing::TestWithParam<uint64_t> {};

TEST_P(ClusterSimulation, OneLeaderRepliesAndNoReplicatedWriteIsLost) {
  const uint64_t runs = number_of("BLOOMERY_SIMULATION_RUNS", kRuns);
  uint64_t leaders = 0;
  uint64_t entries = 0;
  for (uint64_t i = GetParam(); i < runs; i += kParts) {
    RunOptions options;
    options.seed = first_seed() + i;
    const RunResult result = ClusterModel(options).run();
    ASSERT_EQ(result.fault, "") << "BLOOMERY_SIMULATION_SEED=" << options.seed
                                << " BLOOMERY_SIMULATION_RUNS=1 shows it again";
    leaders += static_cast<uint64_t>(result.leaders);
    entries += static_cast<uint64_t>(result.entries);
  }
  RecordProperty("leaders", std::to_string(leaders));
  RecordProperty("acknowledged", std::to_string(entries));
  std::printf("%lu leaders, %lu acknowledged writes\n", leaders, entries);
}

INSTANTIATE_TEST_SUITE_P(Parts, ClusterSimulation, testing::Range<uint64_t>(0, kParts));

// Returns the seed of the first run in which a shard has two leaders that reply to clients; 0 if no
// run has such a fault.
uint64_t first_broken(Mutation mutation, Faults faults = Faults::kDrawn) {
  for (uint64_t i = 0; i < kMutatedRunsMax; ++i) {
    RunOptions options;
    options.seed = first_seed() + i;
    options.faults = faults;
    options.mutation = mutation;
    const RunResult result = ClusterModel(options).run();
    if (result.fault.find(kTwoLeaders) != std::string::npos) return options.seed;
  }
  return 0;
}

TEST(ClusterMutation, ANewLeaderThatDoesNotWaitIsCaught) {
  EXPECT_NE(first_broken(Mutation::kNoWait), 0U);
}

TEST(ClusterMutation, APermitThatCountsFromTheReplyIsCaught) {
  EXPECT_NE(first_broken(Mutation::kPermitFromReply), 0U);
}

TEST(ClusterMutation, ALeaseAsAPermitIsCaught) {
  EXPECT_NE(first_broken(Mutation::kLeaseIsPermit), 0U);
}

TEST(ClusterMutation, ConfirmationsByAMemberThatLagsAreCaught) {
  EXPECT_NE(first_broken(Mutation::kStaleReads), 0U);
}

TEST(ClusterMutation, PromisesOfTheSilentAreCaught) {
  EXPECT_NE(first_broken(Mutation::kSilenceIsPromise), 0U);
}

// Runs in which two processes have the same node id. They must never both reply to clients.
TEST(ClusterTwins, NeverBothReply) {
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    RunOptions options;
    options.seed = first_seed() + i;
    options.faults = Faults::kTwins;
    ASSERT_EQ(ClusterModel(options).run().fault, "");
  }
}

TEST(ClusterTwins, LeadersThatNeedNoKeyOfTheirOwnAreCaught) {
  EXPECT_NE(first_broken(Mutation::kAbsentMayLead, Faults::kTwins), 0U);
}

TEST(ClusterMutation, AnEpochThatARestartForgetsIsCaught) {
  RunOptions options;
  options.seed = first_seed();
  options.faults = Faults::kOldLeaderMeetsRestartedOne;
  EXPECT_EQ(ClusterModel(options).run().fault, "");
  options.mutation = Mutation::kForgetsEpoch;
  EXPECT_THAT(ClusterModel(options).run().fault, testing::HasSubstr(kTwoLeaders));
}

// Returns options for rolling restarts. Each time that all members are in sync, one of them
// restarts or their leader dies.
RunOptions rolling(uint64_t seed, Mutation mutation = Mutation::kNone) {
  RunOptions options;
  options.seed = seed;
  options.members = 2;
  options.faults = Faults::kRollingRestarts;
  options.mutation = mutation;
  return options;
}

// Returns the seed of the first run that loses a write which must survive; 0 if no run does.
uint64_t first_loss(Mutation mutation) {
  for (uint64_t i = 0; i < kMutatedRunsMax; ++i) {
    const RunResult result = ClusterModel(rolling(first_seed() + i, mutation)).run();
    if (result.fault.find("without what") != std::string::npos) return first_seed() + i;
  }
  return 0;
}

TEST(ClusterRollingRestarts, LoseNothing) {
  int leaders = 0;
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    const RunResult result = ClusterModel(rolling(first_seed() + i)).run();
    ASSERT_EQ(result.fault, "");
    leaders += result.leaders;
  }
  EXPECT_GT(leaders, 2) << "restarts change who leads";
}

TEST(ClusterMutation, ALateEndOfBeingInSyncIsCaught) {
  EXPECT_NE(first_loss(Mutation::kLeavesLate), 0U);
}

TEST(ClusterMutation, ALeaseGivenBackTooEarlyIsCaught) {
  EXPECT_NE(first_loss(Mutation::kRevokesEarly), 0U);
}

RunOptions without_power(uint64_t seed, Mutation mutation = Mutation::kNone) {
  RunOptions options;
  options.seed = seed;
  options.faults = Faults::kPowerCuts;
  options.mutation = mutation;
  return options;
}

TEST(ClusterPowerCuts, LeaderWithTheLongestLogLeadsAgain) {
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    ASSERT_EQ(ClusterModel(without_power(first_seed() + i)).run().fault, "");
  }
}

TEST(ClusterMutation, FirstRegisteredReplicaIsCaught) {
  std::string fault;
  for (uint64_t i = 0; i < kMutatedRunsMax && fault.empty(); ++i) {
    fault = ClusterModel(without_power(first_seed() + i, Mutation::kFirstRegistered)).run().fault;
  }
  EXPECT_THAT(fault, testing::HasSubstr("without what"));
}

RunOptions with(Faults faults, uint64_t seed, int members, Mutation mutation = Mutation::kNone) {
  RunOptions options;
  options.seed = seed;
  options.members = members;
  options.faults = faults;
  options.mutation = mutation;
  return options;
}

// Runs the model with different seeds until a run violates an invariant. Returns the description
// of this violation; empty if no run violates an invariant.
std::string first_fault(Faults faults, int members, Mutation mutation) {
  std::string fault;
  for (uint64_t i = 0; i < kMutatedRunsMax && fault.empty(); ++i) {
    fault = ClusterModel(with(faults, first_seed() + i, members, mutation)).run().fault;
  }
  return fault;
}

TEST(ClusterPowerCuts, LeaderLeavesShardToReplicaWithMore) {
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    const int members = i % 2 == 0 ? 2 : 3;
    ASSERT_EQ(ClusterModel(with(Faults::kLeaderPowerCuts, first_seed() + i, members)).run().fault,
              "");
  }
}

TEST(ClusterMutation, LeaderThatAsksNoMemberIsCaught) {
  for (const int members : {2, 3}) {
    EXPECT_THAT(first_fault(Faults::kLeaderPowerCuts, members, Mutation::kAsksNoMember),
                testing::HasSubstr("without what"));
  }
}

TEST(ClusterMutation, MemberThatLearnsLateIsCaught) {
  EXPECT_THAT(first_fault(Faults::kLeaderPowerCuts, 3, Mutation::kLearnsLate),
              testing::HasSubstr("without what"));
}

TEST(ClusterFailingLogs, OnlyMembersWithWorkingLogsLead) {
  int leaders = 0;
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    const int members = i % 2 == 0 ? 3 : 2;
    const RunResult result =
        ClusterModel(with(Faults::kFailingLogs, first_seed() + i, members)).run();
    ASSERT_EQ(result.fault, "");
    leaders += result.leaders;
  }
  EXPECT_GT(leaders, 10);
}

TEST(ClusterAckedWrites, NoFailureOfOneMemberLosesAny) {
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    const int members = i % 2 == 0 ? 2 : 3;
    ASSERT_EQ(ClusterModel(with(Faults::kAckedWrites, first_seed() + i, members)).run().fault, "");
  }
}

TEST(ClusterMutation, ReplyBeforeTheMembersInSyncIsCaught) {
  EXPECT_THAT(first_fault(Faults::kAckedWrites, 3, Mutation::kAcknowledgesEarly),
              testing::HasSubstr("without what"));
}

TEST(ClusterMutation, CandidateWithFailingLogIsCaught) {
  EXPECT_THAT(first_fault(Faults::kFailingLogs, 3, Mutation::kCandidateWithoutLog),
              testing::HasSubstr("its log fails"));
}

TEST(ClusterMutation, SuccessorWithFailingLogIsCaught) {
  EXPECT_THAT(first_fault(Faults::kFailingLogs, 2, Mutation::kNamesAnySuccessor),
              testing::HasSubstr("begins to lead and its log fails"));
}

TEST(ClusterMutation, LeaderThatKeepsFailingLogIsCaught) {
  EXPECT_THAT(first_fault(Faults::kFailingLogs, 3, Mutation::kLeaderWithoutLog),
              testing::HasSubstr("leads and its log fails"));
}

RunOptions handing_over(uint64_t seed, Mutation mutation = Mutation::kNone) {
  RunOptions options;
  options.seed = seed;
  options.faults = Faults::kHandovers;
  options.mutation = mutation;
  return options;
}

RunOptions loading_slowly(uint64_t seed, Mutation mutation = Mutation::kNone) {
  RunOptions options;
  options.seed = seed;
  options.faults = Faults::kSlowLoads;
  options.mutation = mutation;
  return options;
}

TEST(ClusterSlowLoads, EndNoLease) {
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    ASSERT_EQ(ClusterModel(loading_slowly(first_seed() + i)).run().fault, "");
  }
}

TEST(ClusterMutation, ThreadThatWaitsForLoadIsCaught) {
  std::string fault;
  for (uint64_t i = 0; i < kMutatedRunsMax && fault.empty(); ++i) {
    fault = ClusterModel(loading_slowly(first_seed() + i, Mutation::kThreadLoads)).run().fault;
  }
  EXPECT_THAT(fault, testing::HasSubstr("lost its lease"));
}

TEST(ClusterMutation, ServingBeforeTheRoleIsCaught) {
  std::string fault;
  for (uint64_t i = 0; i < kMutatedRunsMax && fault.empty(); ++i) {
    fault = ClusterModel(handing_over(first_seed() + i, Mutation::kServesBeforeRole)).run().fault;
  }
  EXPECT_THAT(fault, testing::HasSubstr("as a replica"));
}

// Returns options for runs in which etcd is restored from an old backup, and the topology is
// recovered later.
RunOptions restored(uint64_t seed, Mutation mutation = Mutation::kNone) {
  RunOptions options;
  options.seed = seed;
  options.faults = Faults::kRestoredEtcd;
  options.mutation = mutation;
  return options;
}

TEST(ClusterRestoredEtcd, HasOneLeaderAndIsRecovered) {
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    ASSERT_EQ(ClusterModel(restored(first_seed() + i)).run().fault, "");
  }
}

TEST(ClusterMutation, ARewindThatIsIgnoredIsCaught) {
  std::string fault;
  for (uint64_t i = 0; i < kMutatedRunsMax && fault.empty(); ++i) {
    fault = ClusterModel(restored(first_seed() + i, Mutation::kIgnoresRewind)).run().fault;
  }
  EXPECT_NE(fault, "");
}

TEST(ClusterHandovers, SendNoClientInCircles) {
  int leaders = 0;
  int requests = 0;
  for (uint64_t i = 0; i < kRuns / 10; ++i) {
    const RunResult result = ClusterModel(handing_over(first_seed() + i)).run();
    ASSERT_EQ(result.fault, "");
    leaders += result.leaders;
    requests += result.requests;
  }
  EXPECT_GT(leaders, 10);
  EXPECT_GT(requests, 1000);
}

TEST(ClusterMutation, MovedWhileNamedIsCaught) {
  const RunResult result =
      ClusterModel(handing_over(first_seed(), Mutation::kMovedWhileNamed)).run();
  EXPECT_THAT(result.fault, testing::HasSubstr("in circles"));
}

TEST(ClusterMutation, LeaderThatLeadsEmptyIsCaught) {
  EXPECT_NE(first_loss(Mutation::kLeadsEmpty), 0U);
}

// A cluster is also safe without the replicas' promises to start no takeover. But then every leader
// that cannot reach etcd loses its shard, so leaders change more often.
TEST(ClusterMutation, PromisesReduceLeaderChanges) {
  int with_promises = 0;
  int without = 0;
  for (uint64_t i = 0; i < kRunsWithoutPromises; ++i) {
    RunOptions options;
    options.seed = first_seed() + i;
    with_promises += ClusterModel(options).run().leaders;
    options.mutation = Mutation::kPromiseBlocksNothing;
    without += ClusterModel(options).run().leaders;
  }
  EXPECT_LT(with_promises, without);
}

TEST(ClusterMutation, ASuccessorThatNeverWaitsIsCaught) {
  EXPECT_NE(first_broken(Mutation::kSuccessorNeverWaits), 0U);
}

TEST(ClusterSimulationOfManyShards, AHundredShardsOnce) {
  RunOptions options;
  options.seed = first_seed();
  options.shards = kRuns > 1000 ? 100 : 10;
  options.seconds = 100;
  EXPECT_EQ(ClusterModel(options).run().fault, "");
}

}  // namespace
}  // namespace simulation
