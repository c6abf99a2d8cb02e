// SPDX-License-Identifier: MIT
#include "server/cluster_node/etcd_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
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
    return kv(keys_.topology, topology_json(stored_), revision);
  }
  static EtcdTxnReply reply_with(std::string text, uint64_t revision) {
    const std::string key = EtcdKeys("test").topology;
    EtcdRangeReply topology;
    topology.kvs = {{.key = key, .value = std::move(text), .mod_revision = revision}};
    EtcdTxnReply reply;
    reply.responses = {topology, EtcdRangeReply{}};
    return reply;
  }
  static Topology moved_slots() {
    Topology topology = sample_topology();
    topology.shard("s1")->slots = {{0, 5461}, {7000, 7000}};
    topology.shard("s2")->slots = {{5462, 6999}, {7001, 16383}};
    return topology;
  }
  std::string answer(const std::string& request) {
    if (request.starts_with("POST /v3/watch")) {
      ++watches_;
      return http_stream("{\"result\":{\"created\":true}}\n");
    }
    ++reads_;
    const std::string reply = read_reply();
    if (std::exchange(races_, false)) {
      send_event(fmt::format(R"({{"kv":{}}})", kv(keys_.alive(id_of('b')), "{}", 12)));
      store_revision_ = 12;
      alive_ids_ = "ab";
    }
    return reply;
  }
  std::string read_reply() {
    std::vector<std::string> alive;
    for (const char id : alive_ids_) alive.push_back(kv(keys_.alive(id_of(id)), "{}", 6));
    return http_reply(fmt::format(
        R"({{"header":{{"cluster_id":"{}","revision":"{}"}},"succeeded":true,"responses":[)"
        R"({{"response_range":{{"kvs":[{}]}}}},{{"response_range":{{}}}},)"
        R"({{"response_range":{{"kvs":[{}]}}}}]}})",
        cluster_id_, store_revision_, has_topology_ ? topology_kv(topology_revision_) : "",
        fmt::join(alive, ",")));
  }
  void send_event(const std::string& event) {
    etcd_.send(http_chunk(fmt::format(
        "{{\"result\":{{\"header\":{{\"revision\":\"20\"}},\"events\":[{}]}}}}\n", event)));
  }

  boost::asio::io_context io_;
  const EtcdKeys keys_{"test"};
  int reads_ = 0;
  int watches_ = 0;
  // The simulated etcd answers reads with these values.
  int store_revision_ = 9;
  int topology_revision_ = 5;
  std::string alive_ids_ = "a";
  bool races_ = false;  // true: the watch reports a change before the next read is answered
  std::string cluster_id_ = "14841639068965178418";
  TopologyVersion known_{sample_topology(), 5};
  Topology stored_ = sample_topology();
  bool has_topology_ = true;
  std::vector<ReadOutcome> checks_;
  int deleted_ = 0;
  std::vector<std::string> clusters_;
  std::vector<uint64_t> revisions_;
  std::vector<IdSet> alive_;
  ScriptedEtcd etcd_{io_, [this](const std::string& request) { return answer(request); }};
  std::unique_ptr<EtcdClient> client_ =
      *EtcdClient::make(io_, {.endpoints = {etcd_.url()}, .call_limit = std::chrono::seconds(10)});
  // `check_interval` is the time between reads. A test shortens it if a read must show changes that
  // the watch does not report.
  void start(std::chrono::milliseconds check_interval = std::chrono::seconds(10)) {
    feed_ = std::make_unique<EtcdFeed>(
        io_, *client_, keys_, check_interval,
        EtcdFeed::Handlers{
            .on_topology =
                [this](const TopologyVersion& seen) { revisions_.push_back(seen.revision); },
            .on_alive = [this](const IdSet& alive) { alive_.push_back(alive); },
            .known = [this]() -> const TopologyVersion& { return known_; },
            .on_check = [this](const TopologyCheck& check) { checks_.push_back(check.outcome); },
            .on_deleted = [this] { ++deleted_; },
            .on_etcd = [this](const std::string& id) { clusters_.push_back(id); }});
    feed_->start();
    ASSERT_TRUE(run_until(io_, [&] { return watches_ == 1; }));
  }
  std::unique_ptr<EtcdFeed> feed_;
};

TEST_F(EtcdFeedTest, TellsWhatIsThereAndWhatChanges) {
  start();
  EXPECT_EQ(revisions_, std::vector<uint64_t>{5});
  EXPECT_EQ(alive_.back(), IdSet{id_of('a')});
  EXPECT_NE(etcd_.requests().back().find(R"("start_revision":"10")"), std::string::npos);
  send_event(fmt::format(R"({{"kv":{}}})", topology_kv(11)));
  ASSERT_TRUE(run_until(io_, [&] { return revisions_.size() == 2; }));
  send_event(fmt::format(R"({{"kv":{}}})", kv(keys_.alive(id_of('b')), "{}", 12)));
  ASSERT_TRUE(run_until(io_, [&] { return alive_.back().size() == 2; }));
  send_event(fmt::format(R"({{"type":"DELETE","kv":{{"key":"{}","mod_revision":"13"}}}})",
                         core::encode_base64(keys_.alive(id_of('a')))));
  ASSERT_TRUE(run_until(io_, [&] { return alive_.back() == IdSet{id_of('b')}; }));
}

TEST_F(EtcdFeedTest, OldAndInvalidDocumentsArePassedOver) {
  topology_revision_ = 6;
  start();
  revisions_.clear();
  feed_->take(reply_with("{}", 7));
  EXPECT_TRUE(revisions_.empty());
  const std::string text = topology_json(sample_topology());
  for (const uint64_t revision : {8, 8, 7}) feed_->take(reply_with(text, revision));
  EXPECT_EQ(revisions_, std::vector<uint64_t>{8});
}

TEST_F(EtcdFeedTest, SlotsThatMovedWithoutARecordAreRefused) {
  start();
  stored_ = moved_slots();
  send_event(fmt::format(R"({{"kv":{}}})", topology_kv(11)));
  send_event(fmt::format(R"({{"kv":{}}})", kv(keys_.alive(id_of('b')), "{}", 12)));
  ASSERT_TRUE(run_until(io_, [&] { return alive_.back().size() == 2; }));
  EXPECT_EQ(revisions_, std::vector<uint64_t>{5});
  EXPECT_EQ(feed_->check_of(5, reply_with(topology_json(moved_slots()), 11)).outcome,
            ReadOutcome::kInvalid);
  // The feed receives the topology first, and the checksum of its slots in a later event.
  feed_->take(reply_with(topology_json(sample_topology()), 5));
  send_event(fmt::format(R"({{"kv":{}}})", kv(keys_.slots, slots_checksum(moved_slots()), 13)));
  ASSERT_TRUE(run_until(io_, [&] { return revisions_.size() == 2; }));
  EXPECT_EQ(revisions_.back(), 11U);
}

TEST_F(EtcdFeedTest, EndedWatchIsFollowedByARead) {
  start();
  etcd_.send(http_chunk("{\"result\":{\"canceled\":true,\"compact_revision\":\"15\"}}\n"));
  EXPECT_TRUE(run_until(io_, [&] { return reads_ == 2; }));
}

TEST_F(EtcdFeedTest, ReadFindsWhatASilentWatchDoesNotTell) {
  start(std::chrono::milliseconds(20));
  ASSERT_TRUE(run_until(io_, [&] { return reads_ >= 5; }));
  EXPECT_EQ(watches_, 1) << "a watch without changes goes on";
  store_revision_ = 40;
  topology_revision_ = 31;
  alive_ids_ = "b";
  ASSERT_TRUE(run_until(io_, [&] { return watches_ == 2; }));
  EXPECT_EQ(revisions_.back(), 31U);
  EXPECT_EQ(alive_.back(), IdSet{id_of('b')});
  const auto watch = std::ranges::find_if(
      etcd_.requests().rbegin(), etcd_.requests().rend(),
      [](const auto& request) { return request.starts_with("POST /v3/watch"); });
  EXPECT_NE(watch->find(R"("start_revision":"41")"), std::string::npos);
}

TEST_F(EtcdFeedTest, CheckReadsAtOnce) {
  start(std::chrono::hours(1));
  alive_ids_ = "b";
  feed_->check();
  ASSERT_TRUE(run_until(io_, [&] { return watches_ == 2; }));
  EXPECT_EQ(alive_.back(), IdSet{id_of('b')});
}

// The feed ignores the answer to a read if the watch has reported later changes.
TEST_F(EtcdFeedTest, ReadOfBeforeTheWatchIsPassedOver) {
  start(std::chrono::milliseconds(20));
  races_ = true;
  ASSERT_TRUE(run_until(io_, [&] { return alive_.back().size() == 2; }));
  const int before = reads_;
  ASSERT_TRUE(run_until(io_, [&] { return reads_ >= before + 3; }));
  EXPECT_EQ(alive_.back().size(), 2U);
  EXPECT_EQ(watches_, 1);
}

TEST_F(EtcdFeedTest, ReadsAreComparedWithWhatIsKnown) {
  start(std::chrono::milliseconds(20));
  EXPECT_EQ(checks_.back(), ReadOutcome::kUnchanged);
  EXPECT_EQ(clusters_, std::vector<std::string>{cluster_id_});
  topology_revision_ = 4;
  ASSERT_TRUE(run_until(io_, [&] { return checks_.back() == ReadOutcome::kChanged; }));
  has_topology_ = false;
  ASSERT_TRUE(run_until(io_, [&] { return checks_.back() == ReadOutcome::kAbsent; }));
  EXPECT_EQ(deleted_, 0) << "no watch has reported it";
}

TEST_F(EtcdFeedTest, ReportsADeletion) {
  start();
  send_event(fmt::format(R"({{"type":"DELETE","kv":{{"key":"{}","mod_revision":"13"}}}})",
                         core::encode_base64(keys_.topology)));
  EXPECT_TRUE(run_until(io_, [&] { return deleted_ == 1; }));
}

// After a restore, etcd has lower revisions. A watch from a higher revision would report nothing,
// so the feed starts a new watch.
TEST_F(EtcdFeedTest, RestoredEtcdIsWatchedAgain) {
  start(std::chrono::milliseconds(20));
  store_revision_ = 7;
  topology_revision_ = 3;
  ASSERT_TRUE(run_until(io_, [&] { return watches_ == 2; }));
  EXPECT_EQ(revisions_.back(), 3U);
  cluster_id_ = "1";
  ASSERT_TRUE(run_until(io_, [&] { return watches_ == 3; }));
  EXPECT_EQ(clusters_.back(), "1");
}

TEST_F(EtcdFeedTest, RecoveredTopologyMayHaveTheKnownRevision) {
  start();
  const auto check = [&] { return feed_->check_of(5, reply_with(topology_json(stored_), 5)); };
  EXPECT_EQ(check().outcome, ReadOutcome::kUnchanged);
  for (Shard& shard : stored_.shards) ++shard.epoch;
  EXPECT_EQ(check().outcome, ReadOutcome::kChanged);
  EXPECT_EQ(check().version.topology, stored_);
}

}  // namespace
}  // namespace server::cluster
