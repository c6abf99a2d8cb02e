// SPDX-License-Identifier: MIT
//
// Tests snapshots that a child process writes to the sockets of replicas, and the stream after
// them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "server/durability/durability.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/replication/leader/replica_state.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/snapshots.h"
#include "tests/support/stream_bytes.h"

namespace server {
namespace {

class LeaderSnapshotsTest : public LeaderFixture {
 protected:
  LeaderSnapshotsTest() { run({"CONFIG", "SET", "repl-diskless-sync-delay", "0"}); }

  bool is_online(size_t index = 0) {
    const auto replicas = leader().describe();
    return replicas.size() > index && replicas[index].state == ReplicaState::kOnline;
  }
  void acknowledge(Remote& peer, uint64_t offset) {
    peer.client.run({"REPLCONF", "ACK", std::to_string(offset)});
  }
  void await_end_of_child() {
    await([this] { return durability_.saves.slot.task() == SaveTask::kNone; });
  }
  std::string info(const std::string& name) {
    const std::string text = run({"INFO", "stats"});
    const size_t begin = text.find("\r\n" + name + ":") + name.size() + 3;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
};

TEST_F(LeaderSnapshotsTest, TheAnswerTellsTheIdAndWhereTheStreamGoesOn) {
  run({"SET", "a", "1"});
  Remote peer(*this);
  EXPECT_TRUE(begin_snapshot(peer).starts_with(
      fmt::format("+FULLRESYNC {} {}\r\n$EOF:", replication_.ids().id, replication_.offset())));
}

TEST_F(LeaderSnapshotsTest, HoldsTheDataAndNamesTheirHistory) {
  run({"SET", "a", std::string(100'000, 'x')});
  run({"BF.ADD", "f", "item"});
  Remote peer(*this);
  const std::string snapshot = snapshot_of(peer);
  EXPECT_NE(snapshot.find(replication_.ids().id), std::string::npos);
  core::keyspace::Keyspace received{16, 1};
  ASSERT_TRUE(snapshots::load(snapshot, received));
  EXPECT_EQ(snapshots::contents(received), snapshots::contents(keyspace_));
}

TEST_F(LeaderSnapshotsTest, NothingFollowsBeforeTheFirstAck) {
  Remote peer(*this);
  (void)snapshot_of(peer);
  await_end_of_child();
  Remote online(*this);
  psync(online, replication_.offset());
  run({"SET", "a", "1"});
  const std::string set = command({"SELECT", "0"}) + kSet;
  // The leader serves replicas in the order in which they connected. `peer` connected before
  // `online`. So if the leader sent the SET to `peer`, it did so before `online` received the SET.
  EXPECT_EQ(online.read(go_on().size() + set.size()), go_on() + set);
  EXPECT_FALSE(peer.is_readable());
  acknowledge(peer, 0);
  EXPECT_EQ(peer.read(set.size()), set);
  const uint64_t end = replication_.offset();
  acknowledge(peer, end);
  EXPECT_EQ(leader().describe().front().acked, end);
}

TEST_F(LeaderSnapshotsTest, ListOmitsReplicasThatHaveLeft) {
  {
    Remote peer(*this);
    (void)snapshot_of(peer);
    acknowledge(peer, 0);
    EXPECT_EQ(leader().count(), 1U);
  }
  EXPECT_EQ(leader().count(), 0U);
}

TEST_F(LeaderSnapshotsTest, OneSnapshotServesAllWhoWait) {
  run({"CONFIG", "SET", "repl-diskless-sync-delay", "1"});
  run({"SET", "a", "1"});
  std::vector<std::unique_ptr<Remote>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<Remote>(*this));
    peers.back()->traits().takes_eof_mark = true;
    peers.back()->client.run({"PSYNC", "?", "-1"});
  }
  advance_ms(1000);
  for (const auto& peer : peers) {
    EXPECT_TRUE(read_snapshot(*peer, begin_snapshot_of(*peer)).starts_with("REDIS"));
  }
  EXPECT_EQ(info("total_forks"), "1");
  EXPECT_EQ(info("sync_full"), "4");
}

TEST_F(LeaderSnapshotsTest, LeavingReplicaDoesNotEndTheSnapshot) {
  run({"CONFIG", "SET", "rdbcompression", "no"});
  const std::string value(1'000'000, 'x');
  run({"SET", "a", value});
  for (const size_t read_bytes : {0, 1, 30, 60, 70'000, 400'000}) {
    {
      Remote peer(*this);
      EXPECT_NE(begin_snapshot(peer), "") << read_bytes;
      (void)peer.read(read_bytes);
    }
    await_end_of_child();
  }
  EXPECT_EQ(leader().count(), 0U);
  Remote whole(*this);
  EXPECT_NE(snapshot_of(whole).find(value), std::string::npos);
  await_end_of_child();
  acknowledge(whole, 0);
  run({"SET", "b", "1"});
  const std::string set = commands({{"SELECT", "0"}, {"SET", "b", "1"}});
  EXPECT_EQ(whole.read(set.size()), set);
}

TEST_F(LeaderSnapshotsTest, AFilteredOneHoldsNoKeys) {
  run({"SET", "a", std::string(10'000, 'x')});
  Remote peer(*this);
  EXPECT_EQ(peer.client.run({"REPLCONF", "rdb-only", "1", "rdb-filter-only", "functions"}), kOk);
  const std::string snapshot = snapshot_of(peer);
  EXPECT_TRUE(snapshot.starts_with("REDIS0010"));
  EXPECT_LT(snapshot.size(), 1000U);
  core::keyspace::Keyspace received{16, 1};
  ASSERT_TRUE(snapshots::load(snapshot, received));
  EXPECT_TRUE(snapshots::contents(received).empty());
}

TEST_F(LeaderSnapshotsTest, SnapshotOnlyClientIsClosedAfterIt) {
  run({"SET", "a", "1"});
  Remote peer(*this);
  EXPECT_EQ(peer.client.run({"REPLCONF", "rdb-only", "1"}), kOk);
  EXPECT_TRUE(snapshot_of(peer).starts_with("REDIS"));
  await([this] { return leader().count() == 0; });
  EXPECT_TRUE(peer.await_end());
}

TEST_F(LeaderSnapshotsTest, TheStreamBehindItBeginsWithItsDatabase) {
  run({"SELECT", "3"});
  run({"SET", "a", "1"});
  Remote peer(*this);
  (void)snapshot_of(peer);
  await_end_of_child();
  acknowledge(peer, replication_.offset());
  await([this] { return is_online(); });
  run({"SET", "a", "1"});
  const std::string set = command({"SELECT", "3"}) + kSet;
  EXPECT_EQ(peer.read(set.size()), set);
}

}  // namespace
}  // namespace server
