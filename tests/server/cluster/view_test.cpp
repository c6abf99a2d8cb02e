// SPDX-License-Identifier: MIT
#include "server/cluster/view.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

TEST(ViewTest, WithoutATopologyNothingIsOwned) {
  const View view(id_of('a'));
  EXPECT_FALSE(view.has_topology());
  EXPECT_EQ(view.revision(), 0U);
  EXPECT_EQ(view.own_node(), nullptr);
  EXPECT_FALSE(view.leads());
  EXPECT_FALSE(view.owns(0));
  EXPECT_FALSE(view.owns_all());
}

TEST(ViewTest, LeaderAndReplicaOwnTheirShardsSlots) {
  const View leader(id_of('a'), {sample_topology(), 9}, {id_of('c'), id_of('a')});
  EXPECT_EQ(leader.revision(), 9U);
  EXPECT_TRUE(leader.leads());
  EXPECT_TRUE(leader.owns(0));
  EXPECT_TRUE(leader.owns(7000));
  EXPECT_FALSE(leader.owns(5461));
  EXPECT_FALSE(leader.owns_all());
  EXPECT_EQ(leader.shard_of(7001).name, "s2");
  EXPECT_EQ(leader.leader_of(leader.shard_of(7001)).ip, "10.0.0.3");
  EXPECT_TRUE(leader.is_alive(id_of('a')));
  EXPECT_FALSE(leader.is_alive(id_of('b')));
  const View replica(id_of('b'), {sample_topology(), 9}, {});
  EXPECT_FALSE(replica.leads());
  EXPECT_TRUE(replica.owns(7000));
  EXPECT_EQ(replica.own_shard()->name, "s1");
}

TEST(ViewTest, StrangerOwnsNothing) {
  const View view(id_of('d'), {sample_topology(), 9}, {});
  EXPECT_TRUE(view.has_topology());
  EXPECT_EQ(view.own_node(), nullptr);
  for (unsigned slot = 0; slot < core::keyspace::kSlotCount; ++slot) {
    ASSERT_FALSE(view.owns(slot));
  }
}

TEST(ViewTest, EmulatedClusterIsOneNode) {
  const auto view = View::emulated(id_of('e'));
  EXPECT_TRUE(view->is_emulated());
  EXPECT_TRUE(view->leads());
  EXPECT_TRUE(view->owns_all());
  EXPECT_TRUE(view->owns(0));
  EXPECT_TRUE(view->owns(16383));
  EXPECT_TRUE(view->is_alive(id_of('e')));
}

}  // namespace
}  // namespace server::cluster
