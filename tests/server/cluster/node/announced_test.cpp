// SPDX-License-Identifier: MIT
#include "server/cluster/node/announced.h"

#include <gtest/gtest.h>

#include "server/config/config.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

class AnnouncedTest : public ::testing::Test {
 protected:
  void set(const std::string& name, const std::string& value) {
    const std::vector<NamedValue> pairs{{name, value}};
    const auto done = config_.set(pairs);
    ASSERT_TRUE(done) << done.error().message;
  }

  const Topology topology_ = sample_topology();
  Config config_;
};

TEST_F(AnnouncedTest, NothingIsChangedUnlessItIsSet) {
  EXPECT_FALSE(announced_topology(topology_, id_of('a'), config_));
  set("cluster-announce-ip", topology_.node(id_of('a'))->ip);
  EXPECT_FALSE(announced_topology(topology_, id_of('a'), config_));
  set("cluster-announce-ip", "10.9.9.9");
  EXPECT_FALSE(announced_topology(topology_, id_of('f'), config_)) << "it is no member";
}

TEST_F(AnnouncedTest, OnlyTheOwnNodeIsChanged) {
  set("cluster-announce-ip", "10.9.9.9");
  set("cluster-announce-port", "70");
  set("cluster-announce-tls-port", "71");
  set("cluster-announce-hostname", "a.example");
  const auto changed = announced_topology(topology_, id_of('a'), config_);
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed->node(id_of('a')), (Node{id_of('a'), "10.9.9.9", 70, 71, "a.example"}));
  Topology rest = *changed;
  *rest.node(id_of('a')) = *topology_.node(id_of('a'));
  EXPECT_EQ(rest, topology_);
}

}  // namespace
}  // namespace server::cluster
