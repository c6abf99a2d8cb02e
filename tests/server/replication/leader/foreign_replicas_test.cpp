// SPDX-License-Identifier: MIT
//
// Tests replicas that run another server program: which of them a leader serves, and when the
// leader disconnects them.
#include "server/replication/leader/foreign_replicas.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/process/availability.h"
#include "server/base/process/server_state.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/captured_log.h"
#include "tests/support/leader_fixture.h"

namespace server {
namespace {

class ForeignReplicasTest : public LeaderFixture {
 protected:
  ForeignReplicasTest() { run({"CONFIG", "SET", "repl-diskless-sync-delay", "0"}); }

  struct Foreign : Remote {
    explicit Foreign(LeaderFixture& test) : Remote(test) {
      client.session->replica_role().traits.reads_effects = false;
    }
  };

  void choose(const std::string& policy) {
    EXPECT_EQ(run({"CONFIG", "SET", "replica-foreign", policy}), kOk);
  }
  void make(const std::string& key, const std::string& layout) {
    EXPECT_EQ(run({"BF.RESERVE", key, "0.01", "100", "LAYOUT", layout}), kOk);
  }
  std::string follow(Remote& peer) { return psync(peer, replication_.offset()); }
  static std::string refusal(const std::string& reason) {
    return error("NOMASTERLINK the replica is refused: " + reason);
  }
  static std::string lacks(const std::string& layout, const std::string& key,
                           const std::string& policy) {
    return "it cannot hold filters of the layout " + layout + ", the first of which was " + key +
           " (replica-foreign " + policy + ")";
  }
  // Connects a replica that runs another server program. Returns the leader's reply.
  std::string answer() {
    Foreign peer(*this);
    return follow(peer);
  }
};

TEST_F(ForeignReplicasTest, AFilterThatItCannotHoldDisconnectsIt) {
  const CapturedLog log;
  Foreign peer(*this);
  Remote own(*this);
  EXPECT_EQ(follow(peer), "");
  EXPECT_EQ(follow(own), "");
  run({"CONFIG", "SET", "min-replicas-to-write", "2"});
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_EQ(run({"BF.ADD", "seen", "x"}), integer(1));
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(leader().count(), 1U) << "the count waits until the leader has forgotten the replica";
  EXPECT_TRUE(peer.client.session->client->kill_requested);
  EXPECT_EQ(leader().count_good(), 1);
  EXPECT_EQ(run({"SET", "a", "1"}), error(kNotEnoughReplicas));
  leader().stop();
  EXPECT_EQ(log.count("is disconnected: " + lacks("native-2", "seen", "auto")), 1U) << log.text();
}

// A foreign replica, such as a Redis server, acknowledges the bytes of each command, even of
// commands that it does not support. So WAIT must not count such a replica's acknowledgement of a
// filter command.
TEST_F(ForeignReplicasTest, ItsAcknowledgementOfAFilterDoesNotCount) {
  Foreign peer(*this);
  follow(peer);
  run({"BF.ADD", "seen", "x"});
  peer.client.run({"REPLCONF", "ACK", std::to_string(replication_.offset())});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 0);
  EXPECT_EQ(leader().count(), 0U);
}

TEST_F(ForeignReplicasTest, ItIsRefusedWhileThereIsSuchAFilter) {
  make("f", "native-2");
  const std::string expected = refusal(lacks("native-2", "f", "auto"));
  EXPECT_EQ(answer(), expected);
  Foreign peer(*this);
  EXPECT_EQ(peer.client.run({"PSYNC", "?", "-1"}), expected);
  EXPECT_EQ(peer.client.run({"SYNC"}), expected);
  EXPECT_EQ(peer.client.run({"PING"}), "+PONG\r\n") << "it is a client still";
  Remote own(*this);
  EXPECT_EQ(follow(own), "");
  run({"DEL", "f"});
  EXPECT_EQ(follow(peer), "");
}

TEST_F(ForeignReplicasTest, EachPolicyNamesWhatItCanHold) {
  const std::vector<std::string> policies = {"auto", "no", "strings", "redisbloom", "valkey-bloom"};
  for (const std::string& policy : policies) {
    for (const std::string layout : {"native-2", "redisbloom", "valkey-bloom", "fingerprints"}) {
      choose(policy);
      make("f", layout);
      const bool is_held =
          policy == "auto" ? layout == "redisbloom" || layout == "valkey-bloom" : policy == layout;
      std::string expected = is_held ? "" : refusal(lacks(layout, "f", policy));
      if (policy == "no") expected = refusal(std::string(kNoForeignReplicas));
      EXPECT_EQ(answer(), expected) << policy << ' ' << layout;
      run({"DEL", "f"});
    }
    EXPECT_EQ(answer().empty(), policy != "no") << policy;
  }
}

// A foreign replica has either RedisBloom or valkey-bloom, so it cannot have filters of both
// modules.
TEST_F(ForeignReplicasTest, NoReplicaHoldsTheFiltersOfTwoModules) {
  Foreign peer(*this);
  EXPECT_EQ(follow(peer), "");
  make("r", "redisbloom");
  run({"PING"});
  EXPECT_EQ(leader().count(), 1U);
  make("v", "valkey-bloom");
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(answer(), refusal(lacks("valkey-bloom", "v", "auto")));
}

TEST_F(ForeignReplicasTest, AChangedPolicyDisconnectsAtOnce) {
  Foreign peer(*this);
  EXPECT_EQ(follow(peer), "");
  choose("strings");
  EXPECT_EQ(leader().count(), 1U);
  choose("no");
  EXPECT_EQ(leader().count(), 0U);
}

TEST_F(ForeignReplicasTest, ClientsThatWantOnlyASnapshotAreServed) {
  choose("no");
  make("f", "native-2");
  Foreign peer(*this);
  EXPECT_EQ(peer.client.run({"REPLCONF", "rdb-only", "1"}), kOk);
  EXPECT_NE(snapshot_of(peer).find("bloomery-ver"), std::string::npos);
}

// The leader checks the filters when the replica connects, and again before the snapshot. A filter
// may be created in between, while the leader waits for more replicas.
TEST_F(ForeignReplicasTest, NoSnapshotBringsWhatAReplicaCannotHold) {
  run({"CONFIG", "SET", "repl-diskless-sync-delay", "1000"});
  Foreign peer(*this);
  EXPECT_EQ(peer.client.run({"PSYNC", "?", "-1"}), "");
  make("f", "native-2");
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(leader().counters().full_syncs, 1U);
}

TEST_F(ForeignReplicasTest, CommandsThatItDoesNotKnowTakeANewSnapshot) {
  const CapturedLog log;
  make("a", "redisbloom");
  make("b", "redisbloom");
  run({"BF.MADD", "a", "x", "y"});
  Foreign peer(*this);
  Remote own(*this);
  EXPECT_EQ(follow(peer), "");
  EXPECT_EQ(follow(own), "");
  EXPECT_EQ(run({"BF.CLEAR", "b"}), kOk);
  EXPECT_EQ(run({"BF.MADD", "b", "z"}), array({integer(1)}));
  const uint64_t before = replication_.offset();
  EXPECT_EQ(leader().count(), 2U);
  EXPECT_EQ(run({"BF.MERGE", "a", "b"}), kOk);
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(leader().count(), 1U);
  Foreign again(*this);
  again.traits().takes_eof_mark = true;
  EXPECT_EQ(psync(again, before), "");
  EXPECT_NE(begin_snapshot_of(again).find("+FULLRESYNC"), std::string::npos);
  // After the snapshot the stream contains only commands that the replica supports.
  Foreign later(*this);
  run({"SET", "a", "1"});
  EXPECT_EQ(follow(later), "");
  EXPECT_EQ(later.read(go_on().size()), go_on());
  leader().stop();
  EXPECT_EQ(log.count("that it does not know"), 1U) << log.text();
}

TEST_F(ForeignReplicasTest, ACopyTakesANewSnapshotForRedisBloom) {
  make("a", "redisbloom");
  Foreign peer(*this);
  EXPECT_EQ(follow(peer), "");
  EXPECT_EQ(run({"COPY", "a", "b"}), integer(1));
  EXPECT_TRUE(peer.await_end());
  make("v", "valkey-bloom");
  const uint64_t before = state_.own_words;
  EXPECT_EQ(run({"COPY", "v", "w"}), integer(1));
  EXPECT_EQ(state_.own_words, before) << "valkey-bloom copies its filters";
}

// The filter is deleted before the leader's thread checks the keyspace, so this thread never finds
// the filter.
TEST_F(ForeignReplicasTest, AFilterThatCameAndWentTakesANewSnapshot) {
  Foreign peer(*this);
  EXPECT_EQ(follow(peer), "");
  const uint64_t before = replication_.offset();
  run({"MULTI"});
  run({"BF.ADD", "seen", "x"});
  run({"SET", "a", "1"});
  run({"DEL", "seen"});
  run({"EXEC"});
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(leader().count(), 0U);
  Foreign again(*this);
  again.traits().takes_eof_mark = true;
  EXPECT_EQ(psync(again, before), "");
  EXPECT_NE(begin_snapshot_of(again).find("+FULLRESYNC"), std::string::npos);
}

// A foreign replica has either RedisBloom or valkey-bloom. The leader disconnects the replica if
// the stream has commands on both kinds of filters, even if each filter was deleted right after its
// creation.
TEST_F(ForeignReplicasTest, AnotherModulesFilterThatWentTakesANewSnapshot) {
  Foreign peer(*this);
  EXPECT_EQ(follow(peer), "");
  make("b", "redisbloom");
  run({"DEL", "b"});
  leader().ack(peer.client.session->client->id, {replication_.offset(), std::nullopt});
  EXPECT_EQ(leader().count(), 1U);
  make("c", "valkey-bloom");
  run({"DEL", "c"});
  EXPECT_TRUE(peer.await_end());
  EXPECT_EQ(leader().count(), 0U);
}

}  // namespace
}  // namespace server
