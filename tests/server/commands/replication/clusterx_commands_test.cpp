// SPDX-License-Identifier: MIT
#include "server/commands/replication/clusterx_commands.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "server/cluster/election/node_file.h"
#include "server/cluster/election/succession.h"
#include "server/commands/replication/cluster_commands.h"
#include "tests/server/cluster/election/fake_member_queue.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using cluster::FakeMemberQueue;
using cluster::id_of;

class ClusterxCommandsTest : public CommandTest {
 protected:
  // Makes the server under test act as a node of the sample topology. The node's id consists of 40
  // times `digit`.
  void be(char digit) {
    queue_.emplace(id_of(digit));
    services_.member = &*queue_;
  }
  std::string ask(const std::vector<std::string>& command) {
    std::string reply = run(command);
    if (!reply.empty()) return reply;
    queue_->run();
    return client_->try_answer();
  }

  std::optional<FakeMemberQueue> queue_;
};

TEST_F(ClusterxCommandsTest, FailsOutsideOfACluster) {
  const std::string disabled = error(kClusterDisabled);
  EXPECT_EQ(run({"CLUSTERX", "PROMISE", "s1", "7"}), disabled);
  EXPECT_EQ(run({"CLUSTERX", "OFFSET", "s1"}), disabled);
  EXPECT_EQ(run({"CLUSTERX", "RESIGNED", "s1", "7"}), disabled);
  EXPECT_EQ(run({"CLUSTERX", "HANDOVER", "s1", id_of('b')}), disabled);
}

TEST_F(ClusterxCommandsTest, AReplicaPromisesToItsLeader) {
  be('b');
  EXPECT_EQ(ask({"CLUSTERX", "PROMISE", "s1", "7"}), kOk);
  EXPECT_THAT(ask({"CLUSTERX", "PROMISE", "s1", "6"}), testing::StartsWith("-NO "));
  EXPECT_THAT(ask({"CLUSTERX", "PROMISE", "s2", "7"}), testing::StartsWith("-NO "));
  EXPECT_THAT(ask({"CLUSTERX", "PROMISE", "s1", "x"}), testing::StartsWith("-ERR "));
  EXPECT_THAT(ask({"CLUSTERX", "PROMISE", "s1", "-1"}), testing::StartsWith("-ERR "));
}

TEST_F(ClusterxCommandsTest, TellsItsOffset) {
  be('b');
  EXPECT_EQ(ask({"CLUSTERX", "OFFSET", "s1"}), "+7 1000\r\n");
  EXPECT_EQ(ask({"CLUSTERX", "RESIGNED", "s1", "7"}), "") << "answers once it serves";
  queue_->now_us += cluster::Succession::kAnswerUs;
  queue_->run();
  EXPECT_THAT(client_->try_answer(), testing::StartsWith("-NO "));
  EXPECT_THAT(ask({"CLUSTERX", "HANDOVER", "s1", id_of('b')}), testing::StartsWith("-ERR "));
}

TEST_F(ClusterxCommandsTest, TellsWhatItKeeps) {
  be('b');
  const std::string line = ask({"CLUSTERX", "TOPOLOGY"});
  ASSERT_TRUE(line.starts_with('+') && line.ends_with("\r\n")) << line;
  const auto file = cluster::parse_node_file(line.substr(1, line.size() - 3));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->id, id_of('b'));
  EXPECT_EQ(file->cluster, config_.text(OptionId::kClusterName));
  EXPECT_EQ(file->topology.revision, 10U);
  EXPECT_EQ(file->topology.topology, cluster::sample_topology());
  EXPECT_EQ(file->kept_epoch, 7U);
}

TEST_F(ClusterxCommandsTest, IsRefusedInATransaction) {
  be('b');
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_THAT(run({"CLUSTERX", "OFFSET", "s1"}), testing::StartsWith("-ERR "));
}

}  // namespace
}  // namespace server
