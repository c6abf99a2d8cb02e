// SPDX-License-Identifier: MIT
#include "server/replication/stream/replication.h"

#include <gtest/gtest.h>

#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/replication/stream/backlog.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class ReplicationTest : public CommandTest {
 protected:
  std::string stream() {
    std::string bytes(1 << 16, '\0');
    const uint64_t begin = replication_.backlog().first_offset();
    bytes.resize(replication_.backlog().read(begin, bytes).value());
    return bytes;
  }
  void become_replica() {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.become_replica();
  }
  void become_leader() {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.become_leader();
  }
  bool has(Availability::Trouble trouble) { return durability_.availability.has(trouble); }

  const std::string kSelect = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
  const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
};

TEST_F(ReplicationTest, CountsNothingBeforeTheFirstReplica) {
  run({"SET", "a", "1"});
  EXPECT_EQ(replication_.offset(), 0);
  EXPECT_FALSE(replication_.position());
}

TEST_F(ReplicationTest, RecordsChangesOnceItHasABacklog) {
  const std::string id = replication_.ids().id;
  run({"SET", "before", "1"});
  replication_.begin_backlog();
  EXPECT_NE(replication_.ids().id, id);
  run({"SET", "a", "1"});
  EXPECT_EQ(stream(), kSelect + kSet);
  run({"SET", "a", "1"});
  ASSERT_TRUE(replication_.position());
  EXPECT_EQ(replication_.position()->offset, int64_t(kSelect.size() + 2 * kSet.size()));
  EXPECT_EQ(replication_.position()->id, replication_.ids().id);
  const std::string second_id = replication_.ids().id;
  replication_.begin_backlog();
  EXPECT_EQ(replication_.ids().id, second_id);
}

TEST_F(ReplicationTest, PositionOfALeaderNamesItsDatabase) {
  replication_.begin_backlog();
  EXPECT_EQ(replication_.position()->stream_database, 0);
  run({"SELECT", "3"});
  run({"SET", "a", "1"});
  EXPECT_EQ(replication_.position()->stream_database, 3);
}

TEST_F(ReplicationTest, EndOfTheBacklogIsAnotherHistory) {
  replication_.begin_backlog();
  run({"SET", "a", "1"});
  const std::string id = replication_.ids().id;
  replication_.end_backlog();
  EXPECT_NE(replication_.ids().id, id);
  EXPECT_EQ(replication_.ids().id2, std::string(40, '0'));
  const uint64_t offset = replication_.offset();
  run({"SET", "a", "2"});
  EXPECT_EQ(replication_.offset(), offset);
}

TEST_F(ReplicationTest, AReplicaTakesTheBytesOfItsLeaderAlone) {
  become_replica();
  EXPECT_TRUE(has(Availability::kReadOnlyReplica));
  {
    const std::scoped_lock lock(replication_.apply_mutex());
    replication_.adopt({0, std::string(40, 'b'), 5000, false});
    replication_.append_applied("bytes", 3);
  }
  client_->session->origin = CommandOrigin::kOwnJournal;
  run({"SET", "a", "1"});
  EXPECT_EQ(stream(), "bytes");
  EXPECT_EQ(replication_.offset(), 5005);
  EXPECT_EQ(replication_.position()->id, std::string(40, 'b'));
  EXPECT_EQ(replication_.position()->stream_database, 3);
}

TEST_F(ReplicationTest, PromotionContinuesTheHistory) {
  become_replica();
  {
    const std::scoped_lock lock(replication_.apply_mutex());
    replication_.adopt({0, std::string(40, 'b'), 5000, false});
  }
  become_leader();
  EXPECT_FALSE(has(Availability::kReadOnlyReplica));
  EXPECT_EQ(replication_.ids().id2, std::string(40, 'b'));
  EXPECT_EQ(replication_.ids().second_offset, 5001);
  run({"SET", "a", "1"});
  EXPECT_EQ(stream(), kSelect + kSet);
  EXPECT_EQ(replication_.offset(), 5000 + kSelect.size() + kSet.size());
}

TEST_F(ReplicationTest, AnotherIdOfTheLeaderKeepsTheBacklog) {
  become_replica();
  const std::scoped_lock lock(replication_.apply_mutex());
  replication_.adopt({0, std::string(40, 'b'), 5000, false});
  replication_.append_applied("bytes", 0);
  replication_.continue_as(std::string(40, 'c'));
  EXPECT_EQ(replication_.ids().id, std::string(40, 'c'));
  EXPECT_EQ(replication_.ids().id2, std::string(40, 'b'));
  EXPECT_EQ(replication_.ids().second_offset, 5006);
  EXPECT_EQ(stream(), "bytes");
}

TEST_F(ReplicationTest, AStaleReplicaIsOneWithoutItsLink) {
  EXPECT_TRUE(config_.set(std::vector<NamedValue>{{"replica-serve-stale-data", "no"}}));
  EXPECT_FALSE(has(Availability::kStaleReplica));
  become_replica();
  EXPECT_TRUE(has(Availability::kStaleReplica));
  replication_.set_link_up(true);
  EXPECT_FALSE(has(Availability::kStaleReplica));
  replication_.set_link_up(false);
  EXPECT_TRUE(config_.set(std::vector<NamedValue>{{"replica-serve-stale-data", "yes"}}));
  EXPECT_FALSE(has(Availability::kStaleReplica));
  EXPECT_TRUE(config_.set(std::vector<NamedValue>{{"replica-read-only", "no"}}));
  EXPECT_FALSE(has(Availability::kReadOnlyReplica));
}

TEST_F(ReplicationTest, NothingIsAddedToAHeldStream) {
  replication_.begin_backlog();
  run({"SET", "a", "1"});
  const std::array<std::string_view, 1> ping = {"PING"};
  const uint64_t end = replication_.offset();
  replication_.hold_stream();
  journal_.publish_to_replicas(ping);
  EXPECT_EQ(replication_.offset(), end);
  replication_.release_stream();
  journal_.publish_to_replicas(ping);
  EXPECT_EQ(replication_.offset(), end + 14);
}

TEST_F(ReplicationTest, AReplicasOwnChangesReachNoStream) {
  replication_.begin_backlog();
  run({"SET", "a", "1"});
  const uint64_t end = replication_.offset();
  become_replica();
  // hold_stream(), release_stream(), begin_backlog() and end_backlog() may be called late, after
  // the server has become a replica. They must then have no effect.
  replication_.hold_stream();
  replication_.release_stream();
  replication_.begin_backlog();
  replication_.end_backlog();
  journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "2"});
  EXPECT_EQ(replication_.offset(), end);
  EXPECT_TRUE(replication_.backlog().is_active());
}

TEST_F(ReplicationTest, ARestartedLeaderContinuesItsSnapshot) {
  replication_.restore({0, std::string(40, 'd'), 700});
  EXPECT_EQ(replication_.ids().id2, std::string(40, 'd'));
  EXPECT_EQ(replication_.ids().second_offset, 701);
  EXPECT_EQ(replication_.offset(), 700);
  run({"SET", "a", "1"});
  EXPECT_EQ(stream(), kSelect + kSet);
}

// A snapshot may be ahead of the offset that it contains. Its filters may then have bits of items
// that no replica has at this offset, so the leader must begin a new history.
TEST_F(ReplicationTest, SnapshotAheadOfTheLeaderHasAnotherHistory) {
  persistence::RdbReplicationInfo position{0, std::string(40, 'd'), 700};
  position.is_ahead = true;
  replication_.restore(position);
  EXPECT_NE(replication_.ids().id, std::string(40, 'd'));
  EXPECT_NE(replication_.ids().id2, std::string(40, 'd'));
  become_replica();
  replication_.restore(position);
  EXPECT_EQ(replication_.ids().id, std::string(40, 'd')) << "its leader's stream completes it";
}

TEST_F(ReplicationTest, OpenTransactionIsNotSentWhenTheRoleEnds) {
  replication_.begin_backlog();
  {
    const persistence::Journal::Group group(journal_);
    become_replica();
    EXPECT_FALSE(replication_.has_diverged()) << "it has written nothing";
  }
  become_leader();
  const persistence::Journal::Group group(journal_);
  journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "2"});
  become_replica();
  EXPECT_TRUE(replication_.has_diverged());
}

TEST_F(ReplicationTest, CountsItsDemotions) {
  EXPECT_EQ(replication_.demotions(), 0U);
  become_replica();
  become_leader();
  become_replica();
  EXPECT_EQ(replication_.demotions(), 2U);
}

TEST_F(ReplicationTest, RestartedReplicaContinuesAfterItsSnapshot) {
  become_replica();
  replication_.restore({4, std::string(40, 'd'), 700});
  EXPECT_EQ(replication_.ids().id, std::string(40, 'd'));
  EXPECT_EQ(replication_.offset(), 700);
  EXPECT_EQ(replication_.stream_database(), 4);
  replication_.restore({0, "no id", 900});
  EXPECT_EQ(replication_.offset(), 700);
}

// Tests a node of a cluster that has restored its replication offset. It keeps this offset until it
// becomes a leader or a replica.
class RestoredNodeTest : public ReplicationTest {
 protected:
  void restore(bool is_ahead = false) {
    state_.availability.begin(Availability::kInCluster);
    replication_.restore({4, kId, 700, false, is_ahead, 7});
    EXPECT_EQ(replication_.ids().id, kId);
    EXPECT_EQ(replication_.cluster_place().history_epoch, 7U);
  }
  void change() { journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "1"}); }
  void lead() {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.lead_restored();
  }

  const std::string kId = std::string(40, 'd');
};

TEST_F(RestoredNodeTest, ReplicaContinues) {
  restore();
  EXPECT_FALSE(replication_.has_diverged());
  become_replica();
  EXPECT_FALSE(replication_.has_diverged());
  EXPECT_EQ(replication_.ids().id, kId);
  EXPECT_EQ(replication_.offset(), 700);
}

TEST_F(RestoredNodeTest, ReplicaWithChangesNeedsAFullSync) {
  restore();
  change();  // for example, a key may expire before the node has a role
  EXPECT_TRUE(replication_.has_diverged()) << "a snapshot names no position";
  become_replica();
  EXPECT_TRUE(replication_.has_diverged());
}

TEST_F(RestoredNodeTest, ReplicaThatIsAheadNeedsAFullSync) {
  restore(true);
  become_replica();
  EXPECT_TRUE(replication_.has_diverged());
}

TEST_F(RestoredNodeTest, LeaderContinuesUnderANewId) {
  restore();
  change();
  lead();
  EXPECT_NE(replication_.ids().id, kId);
  EXPECT_EQ(replication_.ids().id2, kId);
  EXPECT_EQ(replication_.ids().second_offset, 701) << "without the node's own change";
  EXPECT_EQ(stream(), kSelect + kSet);
  EXPECT_FALSE(replication_.has_diverged());
}

TEST_F(RestoredNodeTest, LeaderThatIsAheadBeginsAHistory) {
  restore(true);
  lead();
  EXPECT_NE(replication_.ids().id, kId);
  EXPECT_NE(replication_.ids().id2, kId);
}

}  // namespace
}  // namespace server
