// SPDX-License-Identifier: MIT
#include "server/cluster/election/peer_questions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/cluster/election/member.h"
#include "tests/server/cluster/election/fake_member_queue.h"

namespace server::cluster {
namespace {

class PeerQuestionsTest : public testing::Test {
 protected:
  PeerAnswered taken() {
    return [this](std::string line) { line_ = std::move(line); };
  }
  std::string answer() {
    queue_.run();
    return line_;
  }
  std::string code() { return answer().substr(0, line_.find(' ')); }

  FakeMemberQueue queue_{id_of('b')};
  std::string line_;
};

TEST_F(PeerQuestionsTest, AReplicaPromisesToItsLeaderOnly) {
  ask_for_promise(queue_, "s1", 7, taken());
  EXPECT_EQ(line_, "") << "the Member's thread answers";
  EXPECT_EQ(answer(), "+OK");
  ask_for_promise(queue_, "s1", 6, taken());
  EXPECT_EQ(code(), "-NO");
  ask_for_promise(queue_, "s2", 7, taken());
  EXPECT_EQ(code(), "-NO");
}

TEST_F(PeerQuestionsTest, TellsItsOffsetUnlessItHasPromised) {
  ask_for_offset(queue_, "s1", taken());
  EXPECT_EQ(answer(), "+7 1000");
  ask_for_promise(queue_, "s1", 7, taken());
  ask_for_offset(queue_, "s1", taken());
  EXPECT_EQ(code(), "-NO");
}

TEST_F(PeerQuestionsTest, OnlyALeaderHandsOver) {
  ask_for_handover(queue_, "s1", id_of('b'), taken());
  EXPECT_EQ(code(), "-ERR");
  ask_for_handover(queue_, "s2", id_of('b'), taken());
  EXPECT_EQ(code(), "-NO");
}

TEST_F(PeerQuestionsTest, AFailoverAsksTheLeader) {
  queue_.leader_says = "+OK";
  ask_for_failover(queue_, false, taken());
  EXPECT_EQ(answer(), "+OK");
  EXPECT_EQ(queue_.asked, (std::vector<std::string>{"CLUSTERX", "HANDOVER", "s1", id_of('b')}));
  queue_.leader_says = "-ERR not now";
  ask_for_failover(queue_, false, taken());
  EXPECT_EQ(answer(), "-ERR not now");
  queue_.leader_says = std::nullopt;
  ask_for_failover(queue_, false, taken());
  EXPECT_EQ(code(), "-ERR");
}

TEST_F(PeerQuestionsTest, NodeWithFailingLogAsksForNoHandover) {
  queue_.leader_says = "+OK";
  queue_.facts.log_works = false;
  queue_.member.tick(queue_.now_us, queue_.facts);
  for (const bool is_forced : {false, true}) {
    ask_for_failover(queue_, is_forced, taken());
    EXPECT_EQ(answer(), fmt::format("-{}", kLogOfNodeFails));
  }
  EXPECT_TRUE(queue_.asked.empty());
}

TEST_F(PeerQuestionsTest, ForcedFailoverAsksNoOtherMember) {
  ask_for_failover(queue_, true, taken());
  EXPECT_EQ(answer(), "+OK");
  EXPECT_TRUE(queue_.asked.empty());
}

TEST_F(PeerQuestionsTest, ALeaderDoesNotTakeOver) {
  FakeMemberQueue leader(id_of('a'));
  ask_for_failover(leader, false, taken());
  leader.run();
  EXPECT_EQ(line_, "-" + std::string(kFailoverNeedsReplica));
}

TEST_F(PeerQuestionsTest, AResignationSparesTheWait) {
  report_resigned(queue_, "s1", 7, taken());
  EXPECT_EQ(answer(), "") << "it does not serve yet";
  Topology next = sample_topology();
  next.shard("s1")->leader = id_of('b');
  next.shard("s1")->epoch = 8;
  queue_.member.topology_seen(queue_.now_us, {next, 11});
  queue_.member.epoch_kept(queue_.now_us, "s1", 8);
  queue_.promote();
  EXPECT_EQ(queue_.member.permit().from_us(), queue_.now_us);
  EXPECT_EQ(answer(), "");
  queue_.confirm();
  EXPECT_EQ(answer(), "+OK") << "now the former leader sends its clients here";
}

TEST_F(PeerQuestionsTest, SuccessorThatDoesNotServeSaysSoInTime) {
  report_resigned(queue_, "s1", 7, taken());
  EXPECT_EQ(answer(), "");
  queue_.now_us += Succession::kAnswerUs;
  EXPECT_EQ(code(), "-NO");
}

}  // namespace
}  // namespace server::cluster
