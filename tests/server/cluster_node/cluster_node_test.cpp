// SPDX-License-Identifier: MIT
#include "server/cluster_node/cluster_node.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base64.h"
#include "server/base/config/config.h"
#include "server/cluster/election/member.h"
#include "server/cluster/permit_clock.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/server/cluster/scripted_etcd.h"
#include "tests/server/cluster_node/fake_node.h"

namespace server::cluster {
namespace {

struct QuietHost final : NodeHost {
  ReplicationFacts facts(const Shard*) override { return own_facts; }
  void promote(uint64_t) override { is_promoted = true; }
  void follow(const Node&, uint64_t) override {}
  void hold_writes(std::function<void(uint64_t)>) override {}
  void release_writes() override {}
  void service_changed() override {
    if (on_change) on_change();
  }

  ReplicationFacts own_facts;
  std::atomic<bool> is_promoted = false;
  std::function<void()> on_change;  // the node's thread calls this function
};

class ClusterNodeTest : public ::testing::Test {
 protected:
  ClusterNodeTest() {
    std::string folder = ::testing::TempDir() + "cluster_node_XXXXXX";
    directory_ = mkdtemp(folder.data());
  }
  ~ClusterNodeTest() override { std::filesystem::remove_all(directory_); }

  std::string answer(const std::string& request) {
    if (request.starts_with("POST /v3/lease/grant")) return http_reply(R"({"ID":"7","TTL":"3"})");
    if (request.starts_with("POST /v3/lease")) {
      return http_reply(R"({"result":{"ID":"7","TTL":"3"}})");
    }
    if (request.starts_with("POST /v3/watch")) {
      return http_stream("{\"result\":{\"created\":true}}\n");
    }
    const std::string stored =
        fmt::format(R"({{"count":"1","kvs":[{{"key":"{}","value":"{}","mod_revision":"{}"}}]}})",
                    core::encode_base64("bloomery/bloomery/topology"),
                    core::encode_base64(topology_json(stored_)), stored_revision_);
    return http_reply(fmt::format(R"({{"header":{{"revision":"9"}},"succeeded":true,"responses":[)"
                                  R"({{"response_range":{}}},{{"response_range":{{}}}},)"
                                  R"({{"response_range":{{"kvs":[{}]}}}}]}})",
                                  stored, alive_));
  }
  size_t reads_of_alive() const {
    const std::string key = core::encode_base64("bloomery/bloomery/alive/");
    return static_cast<size_t>(std::ranges::count_if(etcd_.requests(), [&](const auto& request) {
      return request.find(fmt::format(R"("request_range":{{"key":"{}")", key)) != std::string::npos;
    }));
  }
  core::Result<std::unique_ptr<ClusterNode>> try_make(const std::string& id,
                                                      const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "bloomery-server",   "--dir", directory_, "--cluster-etcd", etcd_.url(),
        "--cluster-node-id", id};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    EXPECT_TRUE(config_.load(static_cast<int>(argv.size()), argv.data()));
    return ClusterNode::make({config_, nullptr, state_, host_, "run"});
  }
  std::unique_ptr<ClusterNode> make(const std::string& id,
                                    const std::vector<std::string>& more = {}) {
    auto node = try_make(id, more);
    EXPECT_TRUE(node) << node.error().message;
    return *std::move(node);
  }

  // The topology in etcd and its revision.
  Topology stored_ = sample_topology();
  int stored_revision_ = 5;
  boost::asio::io_context io_;
  ScriptedEtcd etcd_{io_, [this](const std::string& request) { return answer(request); }};
  std::string directory_;
  std::string alive_;  // the live nodes that etcd returns
  Config config_;
  ClusterState state_{1};
  QuietHost host_;
};

TEST_F(ClusterNodeTest, IdIsChosenOnceAndKept) {
  const std::string id = make("")->id();
  EXPECT_TRUE(is_node_id(id));
  EXPECT_EQ(make("")->id(), id);
  EXPECT_EQ(make(id_of('b'))->id(), id_of('b'));
  EXPECT_FALSE(state_.latest()->has_topology());
}

TEST_F(ClusterNodeTest, DirectoryBelongsToOneCluster) {
  make("", {"--cluster-name", "shop"});
  const auto other = try_make("", {"--cluster-name", "other"});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("belongs to a node of the cluster 'shop'"),
            std::string::npos);
}

TEST_F(ClusterNodeTest, AnnouncedAddressIsWrittenToEtcd) {
  auto node = make(id_of('b'), {"--cluster-announce-port", "7009"});
  node->start();
  Topology announced = sample_topology();
  announced.node(id_of('b'))->port = 7009;
  const std::string put = core::encode_base64(topology_json(announced));
  EXPECT_TRUE(run_until(io_, [&] {
    return std::ranges::any_of(etcd_.requests(), [&](const std::string& request) {
      return request.find(put) != std::string::npos;
    });
  }));
  node->stop();
}

TEST_F(ClusterNodeTest, TopologyOfEtcdIsShownAndKept) {
  auto node = make(id_of('b'));
  node->start();
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->revision() == 5; }));
  EXPECT_TRUE(state_.latest()->owns(0));
  EXPECT_FALSE(state_.latest()->leads());
  EXPECT_EQ(state_.service(), Service::kDown);
  // Stops the node. A stopped node makes no calls to etcd.
  node->stop();
  node.reset();
  // A node that starts without etcd reads the topology from its file. It has no permit to reply to
  // writes.
  node = make("");
  EXPECT_EQ(node->id(), id_of('b'));
  EXPECT_EQ(state_.latest()->revision(), 5U);
  EXPECT_FALSE(state_.permits_replies(permit_clock_us()));
}

// Another candidate, which already knows that the leader is gone, asks this replica for its offset.
// The replica must then read the live nodes immediately. Its next periodic read would be two hours
// later.
TEST_F(ClusterNodeTest, AskedReplicaReadsLiveNodesAtOnce) {
  alive_ = fmt::format(R"({{"key":"{}","value":"","mod_revision":"6"}})",
                       core::encode_base64("bloomery/bloomery/alive/" + id_of('a')));
  auto node = make(id_of('b'), {"--cluster-node-timeout", "600000"});
  node->start();
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->revision() == 5; }));
  const size_t before = reads_of_alive();
  EXPECT_NE(before, 0U);
  node->post([](Member& member, int64_t now_us) { (void)member.offset(now_us, "s1"); });
  EXPECT_TRUE(run_until(io_, [&] { return reads_of_alive() > before; }));
  node->stop();
}

// The leader's key is gone from etcd, but the leader answers that it has all data of this replica.
// The replica then waits and asks again, before it takes over.
TEST_F(ClusterNodeTest, ReplicaYieldsToALeaderThatAnswers) {
  // On a busy machine the answer may take longer than Peers::kLimitMs. Then the replica takes over,
  // and the test tries again with a new replica.
  constexpr int kRoundsMax = 10;
  host_.own_facts.has_whole_copy = true;
  bool has_yielded = false;
  for (int round = 0; round < kRoundsMax && !has_yielded; ++round) {
    const FakeNode leader(std::deque<std::string>(1000, "+7 1000\r\n"));
    Node& stored_leader = *stored_.node(id_of('a'));
    stored_leader.ip = leader.node().ip;
    stored_leader.port = leader.node().port;
    std::filesystem::remove(directory_ + "/cluster.json");
    host_.is_promoted = false;
    auto node = make(id_of('b'), {"--cluster-node-timeout", "1000"});
    node->start();
    const auto has_asked_again = [&] {
      const std::string received = leader.received();
      return received.find("OFFSET") != received.rfind("OFFSET");
    };
    EXPECT_TRUE(run_until(io_, [&] { return host_.is_promoted || has_asked_again(); }));
    has_yielded = !host_.is_promoted;
    node->stop();
  }
  EXPECT_TRUE(has_yielded);
}

// etcd was restored from a backup, and the recovered topology got the revision that the node knows.
TEST_F(ClusterNodeTest, RecoveredTopologyOfEqualRevisionIsShown) {
  auto node = make(id_of('b'), {"--cluster-node-timeout", "500"});
  node->start();
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->revision() == 5; }));
  for (Shard& shard : stored_.shards) ++shard.epoch;
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->topology() == stored_; }));
  EXPECT_EQ(state_.latest()->revision(), 5U);
  node->stop();
}

TEST_F(ClusterNodeTest, LeaderReadsTheTopologyOfARestoredEtcd) {
  auto node = make(id_of('a'), {"--cluster-node-timeout", "500"});
  node->start();
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->revision() == 5; }));
  stored_revision_ = 3;
  EXPECT_TRUE(run_until(io_, [&] {
    return std::ranges::any_of(etcd_.requests(), [](const std::string& request) {
      return request.find(R"("mod_revision":"5")") != std::string::npos &&
             request.find(R"("success":[{"request_range")") != std::string::npos;
    });
  }));
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->fault() == TopologyFault::kOlder; }));
  node->stop();
}

TEST_F(ClusterNodeTest, NewLeaderHoldsClientsBeforeItReportsItsRole) {
  std::optional<Service> first;
  host_.on_change = [&] {
    const auto [view, service] = state_.look(0);
    if (view.leads() && !first) first = service;
  };
  auto node = make(id_of('a'));
  node->start();
  EXPECT_TRUE(run_until(io_, [&] { return state_.latest()->leads(); }));
  node->stop();
  EXPECT_EQ(first, Service::kHeld);
}

}  // namespace
}  // namespace server::cluster
