// SPDX-License-Identifier: MIT
//
// Tests which messages the Leader sends to replicas, and their order. Pairs of sockets in the test
// process replace the connections to replicas.
#include "server/replication/leader/leader.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "server/base/process/availability.h"
#include "server/commands/replication/replication_commands.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/sanitized.h"
#include "tests/support/stream_bytes.h"

namespace server {
namespace {

class LeaderTest : public LeaderFixture {
 protected:
  std::string describe_list(const char* type) { return run({"CLIENT", "LIST", "TYPE", type}); }
  const std::string kTooFew = error(kNotEnoughReplicas);
};

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

// Without acknowledgements, the leader would close the link after repl-timeout.
TEST_F(LeaderTest, PauseHoldsNoAckBack) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  pause_.pause(PauseGate::Mode::kAll, clock_.now_ms + 60'000, clock_.now_ms);
  const uint64_t end = replication_.offset();
  peer.client.run({"REPLCONF", "ACK", std::to_string(end)});
  EXPECT_EQ(leader().describe().front().acked, end);
}

TEST_F(LeaderTest, AcksReportFailingLogs) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  const std::string end = std::to_string(replication_.offset());
  const auto log_works = [this] { return leader().describe().front().log_works; };
  peer.client.run({"REPLCONF", "ACK", "1", "append-log", "fails"});
  EXPECT_FALSE(log_works());
  peer.client.run({"REPLCONF", "ACK", end, "append-log", "works", "FACK", "1"});
  EXPECT_TRUE(log_works());
  peer.client.run({"REPLCONF", "ACK", end, "FACK", end, "APPEND-LOG", "FAILS", "later", "word"});
  EXPECT_FALSE(log_works());
  EXPECT_EQ(leader().count_acked(replication_.offset()), 1);
  EXPECT_EQ(leader().count_synced(replication_.offset()), 1);
  peer.client.run({"REPLCONF", "ACK", end});
  EXPECT_TRUE(log_works());
}

// If the leader accepted an offset in the future, WAIT would count the replica for every later
// write.
TEST_F(LeaderTest, RejectsAnAcknowledgedOffsetInTheFuture) {
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
  const std::string refused = error(kNotEnoughReplicas);
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
  constexpr size_t kAppends = support::rounds<size_t>(30'000, 5'000);
  std::jthread writer([this] {
    for (size_t i = 0; i < kAppends; ++i) {
      journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "1"});
      // Pauses for about the time that the sender needs, so that the next append often happens just
      // as the sender becomes idle.
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

// A shorter repl-ping-replica-period takes effect at once. A longer one causes no additional PING.
TEST_F(LeaderTest, ThePeriodOfPingsMayChange) {
  const std::string ping = "*1\r\n$4\r\nPING\r\n";
  const auto set_period = [this](const char* seconds) {
    EXPECT_EQ(run({"CONFIG", "SET", "repl-ping-replica-period", seconds}), kOk);
  };
  set_period("3600");
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  EXPECT_FALSE(peer.hears_more());
  advance_ms(2000);
  set_period("1");
  EXPECT_EQ(peer.read(ping.size()), ping);
  set_period("3600");
  advance_ms(2000);
  EXPECT_FALSE(peer.hears_more());
}

// Without PING the links of a long pause would end by repl-timeout. A question waits for its end.
TEST_F(LeaderTest, APauseOfClientsDoesNotStopThePings) {
  const std::string ping = command({"PING"});
  const std::string question = command({"REPLCONF", "GETACK", "*"});
  EXPECT_EQ(run({"CONFIG", "SET", "repl-ping-replica-period", "1"}), kOk);
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  for (const PauseGate::Mode mode : {PauseGate::Mode::kWrites, PauseGate::Mode::kAll}) {
    const int64_t now_ms = clock_.now_ms;
    pause_.pause(mode, now_ms + 3'600'000, now_ms);
    leader().request_acks();
    advance_ms(1001);
    EXPECT_EQ(peer.read(ping.size()), ping);
    pause_.end();
    EXPECT_EQ(peer.read(question.size()), question);
  }
}

// A replica may take over at the end of the stream. If further units followed, this server could
// not continue the stream of that replica.
TEST_F(LeaderTest, AnEndedStreamEndsWithGetAck) {
  EXPECT_EQ(run({"CONFIG", "SET", "repl-ping-replica-period", "1"}), kOk);
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  const std::string question = command({"REPLCONF", "GETACK", "*"});
  const uint64_t begin = replication_.offset();
  pause_.hold_writes(PauseGate::Hold::kResigning);
  const uint64_t end = leader().end_stream();
  EXPECT_GE(end, begin + question.size());
  EXPECT_TRUE(peer.read(end - begin).ends_with(question));
  leader().request_acks();
  advance_ms(2000);  // a PING is due
  EXPECT_FALSE(peer.hears_more());
  EXPECT_EQ(replication_.offset(), end);
  pause_.release_writes(PauseGate::Hold::kResigning);
  leader().request_acks();
  EXPECT_TRUE(peer.read(question.size()).starts_with("*"));
}

TEST_F(LeaderTest, AReplicaIsCutOffWhenTheStreamIsReplaced) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  leader().on_stream_replaced();
  EXPECT_TRUE(peer.client.session->client->kill_requested);
  pollfd waited{peer.ends[1], POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 10'000), 1);
  EXPECT_EQ(leader().count(), 0);
}

TEST_F(LeaderTest, ReplicaWithoutItsLeaderServesNoReplica) {
  {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.become_replica();
  }
  Remote peer(*this);
  EXPECT_EQ(psync(peer, 0), error(kNoSyncWithoutLeader));
  replication_.set_link_up(true);
  EXPECT_EQ(psync(peer, replication_.offset()), "");
  EXPECT_EQ(peer.read(go_on().size()), go_on());
}

TEST_F(LeaderTest, TheStreamBeginsWithItsDatabase) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  run({"SELECT", "2"});
  run({"SET", "a", "1"});
  const std::string expected = go_on() + command({"SELECT", "2"}) + kSet;
  EXPECT_EQ(peer.read(expected.size()), expected);
}

TEST_F(LeaderTest, ATransactionIsOneGroupOfTheStream) {
  run({"SET", "b", "0"});
  Remote peer(*this);
  psync(peer, replication_.offset());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"MULTI"}, {"SET", "b", "1"}, {"INCR", "b"}, {"EXEC"}}) {
    run(words);
  }
  const std::string expected =
      go_on() + commands({{"MULTI"}, {"SET", "b", "1"}, {"INCR", "b"}, {"EXEC"}});
  EXPECT_EQ(peer.read(expected.size()), expected);
}

TEST_F(LeaderTest, AKeyThatHasExpiredIsDeletedInTheStream) {
  keyspace_.set_hooks([this](unsigned database, std::string_view key) {
    journal_.append(database, std::array<std::string_view, 2>{"DEL", key});
  });
  run({"SET", "gone", "1", "PX", "1"});
  Remote peer(*this);
  psync(peer, replication_.offset());
  advance_ms(10);
  EXPECT_EQ(run({"APPEND", "gone", "x"}), integer(1));
  const std::string expected = go_on() + commands({{"DEL", "gone"}, {"APPEND", "gone", "x"}});
  EXPECT_EQ(peer.read(expected.size()), expected);
}

TEST_F(LeaderTest, ResendsTheStreamFromAnyOffset) {
  for (int i = 0; i < 20; ++i) run({"SET", "key:" + std::to_string(i), "value"});
  std::string all;
  {
    Remote whole(*this);
    psync(whole, 0);
    all = whole.read(go_on().size() + replication_.offset()).substr(go_on().size());
    ASSERT_EQ(all.size(), replication_.offset());
  }
  for (const size_t missing : {size_t{0}, size_t{1}, size_t{10}, all.size()}) {
    Remote peer(*this);
    psync(peer, all.size() - missing);
    const std::string expected = go_on() + all.substr(all.size() - missing);
    EXPECT_EQ(peer.read(expected.size()), expected) << missing;
  }
}

TEST_F(LeaderTest, SendsAFullSyncWhenItCannotContinue) {
  run({"SET", "a", "1"});
  const std::string id = replication_.ids().id;
  const std::string beyond = std::to_string(replication_.offset() + 2);
  const std::vector<std::pair<std::string, std::string>> questions = {{id, beyond},
                                                                      {id, "-1"},
                                                                      {id, "0"},
                                                                      {id, "4611686018427387904"},
                                                                      {std::string(40, '0'), "1"}};
  uint64_t full_syncs = 0;
  for (const auto& [name, offset] : questions) {
    Remote peer(*this);
    EXPECT_EQ(peer.client.run({"PSYNC", name, offset}), "");
    EXPECT_EQ(leader().counters().full_syncs, ++full_syncs) << name << " " << offset;
  }
  EXPECT_EQ(leader().counters().refused_partial_syncs, questions.size());
  EXPECT_EQ(leader().counters().partial_syncs, 0U);
}

TEST_F(LeaderTest, FullSyncRequestIsNoRefusedPartialSync) {
  Remote peer(*this);
  peer.client.run({"PSYNC", "?", "-1"});
  EXPECT_EQ(leader().counters().full_syncs, 1U);
  EXPECT_EQ(leader().counters().refused_partial_syncs, 0U);
}

TEST_F(LeaderTest, OldReplicaDoesNotGetTheId) {
  Remote peer(*this);
  peer.traits().knows_psync2 = false;
  psync(peer, replication_.offset());
  run({"SET", "a", "1"});
  const std::string expected = "+CONTINUE\r\n" + command({"SELECT", "0"}) + kSet;
  EXPECT_EQ(peer.read(expected.size()), expected);
}

TEST_F(LeaderTest, ManyCutsLoseAndRepeatNothing) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  Remote whole(*this);
  psync(whole, 0);
  std::string pieces;
  for (int cut = 0; cut < 200; ++cut) {
    for (unsigned writes = random() % 4; writes > 0; --writes) {
      const std::string key = "key:" + std::to_string(random() % 50);
      run({"SET", "s" + key, std::string(random() % 500, 'x')});
      run({"BF.ADD", "f" + key, std::to_string(random())});
    }
    Remote peer(*this);
    psync(peer, pieces.size());
    const size_t size = random() % (replication_.offset() - pieces.size() + 1);
    pieces += peer.read(go_on().size() + size).substr(go_on().size(), size);
  }
  const std::string begun = go_on() + pieces;
  EXPECT_TRUE(whole.read(begun.size()).starts_with(begun));
  EXPECT_EQ(leader().counters().partial_syncs, 201U);
  EXPECT_EQ(leader().counters().full_syncs, 0U);
}

TEST_F(LeaderTest, AReplicaThatIsTooFarBehindIsCutOff) {
  run({"CONFIG", "SET", "client-output-buffer-limit", "replica 4mb 0 0"});
  Remote peer(*this);
  psync(peer, replication_.offset());
  const std::string value(100'000, 'x');
  for (int i = 0; i < 400 && leader().count() > 0; ++i) run({"SET", "a", value});
  await([this] { return leader().count() == 0; });
  EXPECT_TRUE(peer.client.session->client->kill_requested);
  EXPECT_TRUE(peer.await_end());
}

TEST_F(LeaderTest, ASilentReplicaIsCutOff) {
  run({"CONFIG", "SET", "repl-timeout", "1"});
  Remote peer(*this);
  psync(peer, replication_.offset());
  advance_ms(2100);
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(leader().count(), 0U);
}

TEST_F(LeaderTest, ReplicasAreClientsOfTheirOwnType) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  const std::string list = describe_list("replica");
  EXPECT_NE(list.find(" flags=S "), std::string::npos) << list;
  EXPECT_EQ(std::ranges::count(list, '\n'), 3) << "one line, and those of the reply";
  EXPECT_EQ(describe_list("normal").find("flags=S"), std::string::npos);
}

TEST_F(LeaderTest, ReplicasAreKilledAsTheirTypeAlone) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "master"}), integer(0));
  EXPECT_FALSE(peer.client.session->client->kill_requested);
  EXPECT_EQ(leader_.count(), 1u);
  EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "replica"}), integer(1));
  EXPECT_TRUE(peer.client.session->client->kill_requested);
  EXPECT_EQ(leader_.count(), 0u) << "before its connection has ended";
}

TEST_F(LeaderTest, InfoAndRoleNameItsReplicas) {
  Remote peer(*this);
  peer.client.run({"REPLCONF", "listening-port", "7777", "ip-address", "10.1.2.3"});
  run({"SET", "a", "1"});
  psync(peer, replication_.offset());
  const std::string end = std::to_string(replication_.offset());
  peer.client.run({"REPLCONF", "ACK", end});
  EXPECT_NE(run({"INFO", "replication"})
                .find("slave0:ip=10.1.2.3,port=7777,state=online,offset=" + end + ",lag=0\r\n"),
            std::string::npos);
  EXPECT_EQ(run({"ROLE"}),
            array({bulk("master"), integer(static_cast<int64_t>(replication_.offset())),
                   array({array({bulk("10.1.2.3"), bulk("7777"), bulk(end)})})}));
}

TEST_F(LeaderTest, AReplicaThatLagsIsNoGoodOne) {
  run({"CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "1"});
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_EQ(leader().count_good(), 1);
  EXPECT_NE(run({"INFO", "replication"}).find("min_slaves_good_slaves:1\r\n"), std::string::npos);
  advance_ms(2100);
  await([this] { return run({"SET", "a", "2"}) == kTooFew; });
  EXPECT_EQ(leader().count_good(), 0);
  peer.client.run({"REPLCONF", "ACK", std::to_string(replication_.offset())});
  EXPECT_EQ(run({"SET", "a", "3"}), kOk);
}

TEST_F(LeaderTest, AHigherMinimumHoldsAtOnce) {
  run({"CONFIG", "SET", "min-replicas-to-write", "1"});
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_EQ(run({"CONFIG", "SET", "min-replicas-to-write", "2"}), kOk);
  EXPECT_EQ(run({"SET", "a", "2"}), kTooFew);
}

}  // namespace
}  // namespace server
