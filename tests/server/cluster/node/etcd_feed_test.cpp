// SPDX-License-Identifier: MIT
#include "server/cluster/node/etcd_feed.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base64.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/server/cluster/scripted_etcd.h"

namespace server::cluster {
namespace {

class EtcdFeedTest : public ::testing::Test {
 protected:
  std::string kv(const std::string& key, const std::string& value, int revision) {
    return fmt::format(R"({{"key":"{}","value":"{}","mod_revision":"{}"}})",
                       core::encode_base64(key), core::encode_base64(value), revision);
  }
  std::string topology_kv(int revision) {
    return kv(keys_.topology, topology_json(sample_topology()), revision);
  }
  std::string answer(const std::string& request) {
    if (request.starts_with("POST /v3/watch")) {
      return http_stream("{\"result\":{\"created\":true}}\n");
    }
    ++reads_;
    return http_reply(fmt::format(R"({{"header":{{"revision":"9"}},"succeeded":true,"responses":[)"
                                  R"({{"response_range":{{"count":"1","kvs":[{}]}}}},)"
                                  R"({{"response_range":{{"count":"1","kvs":[{}]}}}}]}})",
                                  topology_kv(5), kv(keys_.alive(id_of('a')), "{}", 6)));
  }
  bool watches() {
    return run_until(io_, [&] {
      return !etcd_.requests().empty() && etcd_.requests().back().starts_with("POST /v3/watch");
    });
  }
  void tell(const std::string& event) {
    etcd_.send(http_chunk(fmt::format(
        "{{\"result\":{{\"header\":{{\"revision\":\"20\"}},\"events\":[{}]}}}}\n", event)));
  }

  boost::asio::io_context io_;
  const EtcdKeys keys_{"test"};
  int reads_ = 0;
  std::vector<uint64_t> revisions_;
  std::vector<IdSet> alive_;
  ScriptedEtcd etcd_{io_, [this](const std::string& request) { return answer(request); }};
  std::unique_ptr<EtcdClient> client_ =
      *EtcdClient::make(io_, {.endpoints = {etcd_.url()}, .call_limit = std::chrono::seconds(10)});
  EtcdFeed feed_{io_,
                 *client_,
                 keys_,
                 {[this](const TopologyVersion& seen) { revisions_.push_back(seen.revision); },
                  [this](const IdSet& alive) { alive_.push_back(alive); }}};
};

TEST_F(EtcdFeedTest, TellsWhatIsThereAndWhatChanges) {
  feed_.start();
  ASSERT_TRUE(watches());
  EXPECT_EQ(revisions_, std::vector<uint64_t>{5});
  EXPECT_EQ(alive_.back(), IdSet{id_of('a')});
  EXPECT_NE(etcd_.requests().back().find(R"("start_revision":"10")"), std::string::npos);
  tell(fmt::format(R"({{"kv":{}}})", topology_kv(11)));
  ASSERT_TRUE(run_until(io_, [&] { return revisions_.size() == 2; }));
  tell(fmt::format(R"({{"kv":{}}})", kv(keys_.alive(id_of('b')), "{}", 12)));
  ASSERT_TRUE(run_until(io_, [&] { return alive_.back().size() == 2; }));
  tell(fmt::format(R"({{"type":"DELETE","kv":{{"key":"{}","mod_revision":"13"}}}})",
                   core::encode_base64(keys_.alive(id_of('a')))));
  ASSERT_TRUE(run_until(io_, [&] { return alive_.back() == IdSet{id_of('b')}; }));
}

TEST_F(EtcdFeedTest, OldAndInvalidDocumentsArePassedOver) {
  feed_.take_topology({.key = keys_.topology, .value = "{}", .mod_revision = 7});
  EXPECT_TRUE(revisions_.empty());
  const std::string text = topology_json(sample_topology());
  feed_.take_topology({.key = keys_.topology, .value = text, .mod_revision = 8});
  feed_.take_topology({.key = keys_.topology, .value = text, .mod_revision = 8});
  feed_.take_topology({.key = keys_.topology, .value = text, .mod_revision = 7});
  EXPECT_EQ(revisions_, std::vector<uint64_t>{8});
}

TEST_F(EtcdFeedTest, EndedWatchIsFollowedByARead) {
  feed_.start();
  ASSERT_TRUE(watches());
  etcd_.send(http_chunk("{\"result\":{\"canceled\":true,\"compact_revision\":\"15\"}}\n"));
  EXPECT_TRUE(run_until(io_, [&] { return reads_ == 2; }));
}

}  // namespace
}  // namespace server::cluster
