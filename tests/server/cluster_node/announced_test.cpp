// SPDX-License-Identifier: MIT
#include "server/cluster_node/announced.h"

#include <gtest/gtest.h>

#include "server/base/config/config.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

class AnnouncedTest : public ::testing::Test {
 protected:
  AnnouncedTest() {
    for (const OptionId id : {OptionId::kPort, OptionId::kBind}) {
      config_.on_change(id, []() -> core::Result<> { return {}; });
    }
  }
  void set(const std::string& name, const std::string& value) {
    const std::vector<NamedValue> pairs{{name, value}};
    const auto done = config_.set(pairs);
    ASSERT_TRUE(done) << done.error().message;
  }

  const Topology topology_ = sample_topology();
  Config config_;
  const Listening before_ = listening_of(config_);
};

TEST_F(AnnouncedTest, NothingIsChangedUnlessItIsSet) {
  EXPECT_FALSE(announced_topology(topology_, id_of('a'), config_, before_));
  set("cluster-announce-ip", topology_.node(id_of('a'))->ip);
  EXPECT_FALSE(announced_topology(topology_, id_of('a'), config_, before_));
  set("cluster-announce-ip", "10.9.9.9");
  EXPECT_FALSE(announced_topology(topology_, id_of('f'), config_, before_)) << "it is no member";
}

TEST_F(AnnouncedTest, OnlyTheOwnNodeIsChanged) {
  set("cluster-announce-ip", "10.9.9.9");
  set("cluster-announce-port", "70");
  set("cluster-announce-tls-port", "71");
  set("cluster-announce-hostname", "a.example");
  const auto changed = announced_topology(topology_, id_of('a'), config_, before_);
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed->node(id_of('a')), (Node{id_of('a'), "10.9.9.9", 70, 71, "a.example"}));
  Topology rest = *changed;
  *rest.node(id_of('a')) = *topology_.node(id_of('a'));
  EXPECT_EQ(rest, topology_);
}

TEST_F(AnnouncedTest, ChangedPortsAreAnnounced) {
  // In the topology, node a has port 7001. If it listened on 7001 before, it announces its new
  // port. If it listened on another port, port 7001 is a mapped port, which the topology keeps.
  const Listening before{"10.0.0.1", 7001, 0};
  set("port", "7009");
  const auto changed = announced_topology(topology_, id_of('a'), config_, before);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->node(id_of('a'))->port, 7009);
  EXPECT_FALSE(announced_topology(topology_, id_of('a'), config_, {"10.0.0.1", 6379, 0}));
  set("cluster-announce-port", "7001");
  EXPECT_FALSE(announced_topology(topology_, id_of('a'), config_, before)) << "the option wins";
}

TEST_F(AnnouncedTest, ChangedBindAddressIsAnnounced) {
  const auto ip_of = [this](const std::string& bind_before, const std::string& bind_now) {
    set("bind", bind_now);
    const Listening before{bind_before, listening_of(config_).port, 0};
    return announced_node(*topology_.node(id_of('a')), config_, before).ip;
  };
  EXPECT_EQ(ip_of("127.0.0.1 10.0.0.1", "127.0.0.1 10.0.0.9"), "10.0.0.9");
  EXPECT_EQ(ip_of("10.0.0.1", "10.0.0.1 10.0.0.9"), "10.0.0.1") << "still there";
  EXPECT_EQ(ip_of("10.0.0.7", "10.0.0.9"), "10.0.0.1") << "a mapped address";
  EXPECT_EQ(ip_of("10.0.0.1", "* -::*"), "10.0.0.1") << "every address";
  EXPECT_EQ(ip_of("10.0.0.1", "127.0.0.1"), "10.0.0.1") << "not reachable";
  EXPECT_EQ(ip_of("-10.0.0.1", "-10.0.0.9 -::1"), "10.0.0.9") << "optional addresses";
  EXPECT_EQ(ip_of("10.0.0.1", "-::1 -10.0.0.1"), "10.0.0.1") << "still there, but optional";
}

}  // namespace
}  // namespace server::cluster
