// SPDX-License-Identifier: MIT
#include "server/clustering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/process/process_facts.h"
#include "server/base/process/server_state.h"
#include "server/cluster/view.h"
#include "tests/support/command_test.h"
#include "tests/support/temp_directory.h"
#include "tests/support/test_threads.h"

namespace server {
namespace {

using ::testing::HasSubstr;

class ClusteringTest : public CommandTest {
 protected:
  std::string prepare(std::vector<const char*> words) {
    words.insert(words.begin(), "bloomery-server");
    EXPECT_TRUE(config_.load(static_cast<int>(words.size()), words.data()));
    const auto prepared = clustering_.prepare(services_.member);
    return prepared ? "" : prepared.error().message;
  }

  Clustering clustering_{
      {{config_, keyspace_, state_, replication_, leader_, replica_controller_, pause_, threads_},
       facts_,
       nullptr}};
};

TEST_F(ClusteringTest, WithoutAClusterNothingChanges) {
  EXPECT_EQ(prepare({}), "");
  EXPECT_FALSE(state_.is_in_cluster());
  EXPECT_EQ(keyspace_.slot_sizes(), nullptr);
  EXPECT_TRUE(clustering_.check_data());
}

TEST_F(ClusteringTest, EmulatedClusterServesAtOnce) {
  EXPECT_EQ(prepare({"--cluster-enabled", "emulated"}), "");
  EXPECT_TRUE(state_.is_in_cluster());
  EXPECT_NE(keyspace_.slot_sizes(), nullptr);
  EXPECT_EQ(clustering_.state().service(), cluster::Service::kUp);
  EXPECT_EQ(clustering_.state().latest()->own_id(), facts_.run_id);
}

TEST_F(ClusteringTest, EmulatedClusterNeedsNoPermit) {
  EXPECT_EQ(prepare({"--cluster-enabled", "emulated"}), "");
  EXPECT_EQ(clustering_.permit(), nullptr);
}

TEST_F(ClusteringTest, NodeNeedsEtcd) {
  const support::TempDirectory folder;
  EXPECT_THAT(prepare({"--cluster-enabled", "yes", "--dir", folder.path().c_str()}),
              HasSubstr("cluster-etcd"));
}

TEST_F(ClusteringTest, ReplicaOfAnotherServerIsNoNode) {
  EXPECT_THAT(prepare({"--cluster-enabled", "emulated", "--replicaof", "127.0.0.1", "1"}),
              HasSubstr("replicaof"));
}

TEST_F(ClusteringTest, ClusterHasOneDatabase) {
  EXPECT_EQ(prepare({"--cluster-enabled", "emulated"}), "");
  const auto key = keyspace_.ref("key");
  {
    const auto lock = keyspace_.lock_exclusive(key);
    keyspace_.insert(1, key);
  }
  EXPECT_FALSE(clustering_.check_data());
}

}  // namespace
}  // namespace server
