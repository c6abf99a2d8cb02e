// SPDX-License-Identifier: MIT
//
// Leader over pairs of sockets, with its thread but without a process: who is told what, and when.
#include "server/replication/leader/leader.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <string_view>
#include <thread>

#include "tests/support/leader_fixture.h"

namespace server {
namespace {

class LeaderTest : public LeaderFixture {};

TEST_F(LeaderTest, SendsWhatIsMissedAndWhatFollows) {
  run({"SELECT", "0"});
  run({"SET", "a", "1"});
  const uint64_t before = replication_.offset() - kSet.size();
  Remote peer(*this);
  EXPECT_EQ(psync(peer, before), "");
  EXPECT_EQ(peer.read(go_on().size() + kSet.size()), go_on() + kSet);
  run({"SET", "a", "1"});
  EXPECT_EQ(peer.read(kSet.size()), kSet);
  EXPECT_EQ(leader().counters().partial_syncs, 1);
}

TEST_F(LeaderTest, AReplicasConnectionAnswersNothing) {
  Remote peer(*this);
  EXPECT_EQ(psync(peer, replication_.offset()), "");
  EXPECT_EQ(peer.client.run({"PING"}), "");
  EXPECT_EQ(peer.client.run({"NOSUCH"}), "");
  EXPECT_EQ(peer.client.run({"PSYNC", "?", "-1"}), "");
  EXPECT_EQ(leader().count(), 1);
}

TEST_F(LeaderTest, CountsWhatIsAcknowledged) {
  Remote first(*this);
  Remote second(*this);
  psync(first, replication_.offset());
  psync(second, replication_.offset());
  run({"SET", "a", "1"});
  const std::string end = std::to_string(replication_.offset());
  EXPECT_EQ(leader().count_acked(replication_.offset()), 0);
  first.client.run({"REPLCONF", "ACK", end});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 1);
  second.client.run({"REPLCONF", "ACK", end, "FACK", end});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 2);
  EXPECT_EQ(leader().count_synced(replication_.offset()), 1);
  EXPECT_EQ(run({"WAIT", "2", "0"}), integer(2));
  EXPECT_EQ(run({"WAITAOF", "0", "1", "0"}), array({integer(0), integer(1)}));
}

// A replica that claims the future would be counted for every write to come.
TEST_F(LeaderTest, NobodyHasWhatIsNotWrittenYet) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  const std::string far = std::to_string(INT64_MAX);
  peer.client.run({"REPLCONF", "ACK", far, "FACK", far});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 1);
  EXPECT_EQ(leader().count_synced(replication_.offset()), 1);
  run({"SET", "a", "1"});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 0);
  EXPECT_EQ(leader().count_synced(replication_.offset()), 0);
}

TEST_F(LeaderTest, WritesAreRefusedWithoutEnoughReplicas) {
  EXPECT_EQ(run({"CONFIG", "SET", "min-replicas-to-write", "1"}), kOk);
  const std::string refused = error("NOREPLICAS Not enough good replicas to write.");
  EXPECT_EQ(run({"SET", "a", "1"}), refused);
  {
    Remote peer(*this);
    psync(peer, replication_.offset());
    EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  }
  EXPECT_EQ(run({"SET", "a", "1"}), refused);
}

TEST_F(LeaderTest, AReplicaThatKeepsUpStaysWhileTheStreamGrows) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  const uint64_t begin = replication_.offset();
  peer.read(go_on().size());
  constexpr size_t kAppends = 30'000;
  std::jthread writer([this] {
    for (size_t i = 0; i < kAppends; ++i) {
      journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "1"});
      // Often as long as it takes to send what there is, so that one comes just then.
      for (std::atomic<size_t> pause = i % 4096; pause > 0; --pause) continue;
    }
  });
  const size_t select_bytes = std::string_view("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n").size();
  const size_t wanted = select_bytes + kAppends * kSet.size();
  EXPECT_EQ(peer.read(wanted).size(), wanted);
  writer.join();
  EXPECT_GE(replication_.offset(), begin + wanted);
  EXPECT_EQ(leader().count(), 1);
}

// A superfluous one would be a byte of the stream that a promoted replica's siblings lack.
TEST_F(LeaderTest, ThePeriodOfPingsMayChange) {
  const std::string ping = "*1\r\n$4\r\nPING\r\n";
  const auto set_period = [this](const char* seconds) {
    EXPECT_EQ(run({"CONFIG", "SET", "repl-ping-replica-period", seconds}), kOk);
  };
  set_period("3600");
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  // The thread looks at the clock several times in this second.
  EXPECT_EQ(peer.read(1), "");
  advance_ms(2000);
  set_period("1");
  EXPECT_EQ(peer.read(ping.size()), ping);
  set_period("3600");
  advance_ms(2000);
  EXPECT_EQ(peer.read(1), "");
}

TEST_F(LeaderTest, AReplicaIsCutOffWhenTheStreamIsReplaced) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  leader().on_stream_replaced();
  EXPECT_TRUE(peer.client.session->kill_requested);
  pollfd waited{peer.ends[1], POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 1000), 1);
  EXPECT_EQ(leader().count(), 0);
}

TEST_F(LeaderTest, AReplicaWithoutItsLeaderServesNobody) {
  {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.become_replica();
  }
  Remote peer(*this);
  EXPECT_EQ(psync(peer, 0), error("NOMASTERLINK Can't SYNC while not connected with my master"));
  replication_.set_link_up(true);
  EXPECT_EQ(psync(peer, replication_.offset()), "");
  EXPECT_EQ(peer.read(go_on().size()), go_on());
}

}  // namespace
}  // namespace server
