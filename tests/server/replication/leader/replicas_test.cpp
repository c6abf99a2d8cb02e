// SPDX-License-Identifier: MIT
#include "server/replication/leader/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/clock.h"

namespace server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ReplicaState = Replica::State;

ReplicaTraits marked() {
  ReplicaTraits traits;
  traits.takes_eof_mark = true;
  traits.knows_psync2 = true;
  return traits;
}

class ReplicasTest : public ::testing::Test {
 protected:
  // Starts the snapshot that is due now. Returns the replicas that receive the snapshot.
  Replicas::Batch begin() {
    const auto batch = replicas_.due(policy_, now_);
    EXPECT_TRUE(batch);
    if (!batch) return {};
    replicas_.begin(*batch, now_);
    return *batch;
  }

  Replicas replicas_;
  Replicas::Policy policy_{true, 5, 0};
  int64_t now_ = 100 * core::kSecondUs;
};

TEST_F(ReplicasTest, AMarkedSnapshotWaitsForOthers) {
  EXPECT_FALSE(replicas_.due(policy_, now_));
  replicas_.add(1, marked(), true, now_);
  EXPECT_FALSE(replicas_.due(policy_, now_ + 5 * core::kSecondUs - 1));
  replicas_.add(2, marked(), true, now_ + 3 * core::kSecondUs);
  const auto batch = replicas_.due(policy_, now_ + 5 * core::kSecondUs);
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->ids, ElementsAre(1, 2));
  EXPECT_EQ(batch->form, SnapshotForm::kMarked);
  EXPECT_TRUE(batch->has_keys);
}

TEST_F(ReplicasTest, MemberOfTheOwnShardDoesNotWait) {
  ReplicaTraits member = marked();
  member.node_id = "a";
  replicas_.add(1, member, true, now_);
  EXPECT_THAT(begin().ids, ElementsAre(1));
}

TEST_F(ReplicasTest, EnoughReplicasEndTheWait) {
  policy_.count_max = 2;
  replicas_.add(1, marked(), true, now_);
  EXPECT_FALSE(replicas_.due(policy_, now_));
  replicas_.add(2, marked(), true, now_);
  EXPECT_THAT(begin().ids, ElementsAre(1, 2));
}

TEST_F(ReplicasTest, AFileDoesNotEndTheWaitForOthers) {
  policy_.count_max = 3;
  replicas_.add(1, marked(), true, now_ - 1);
  replicas_.add(2, {}, false, now_);
  const auto batch = begin();
  EXPECT_EQ(batch.form, SnapshotForm::kFile);
  EXPECT_THAT(batch.ids, ElementsAre(2));
  EXPECT_FALSE(replicas_.due(policy_, now_));
}

TEST_F(ReplicasTest, FilesDoNotWait) {
  replicas_.add(1, {}, false, now_);
  EXPECT_EQ(begin().form, SnapshotForm::kFile);
  policy_.is_diskless = false;
  replicas_.add(2, marked(), true, now_);
  EXPECT_EQ(begin().form, SnapshotForm::kFile);
}

TEST_F(ReplicasTest, OnlyWhatIsAlikeIsSentTogether) {
  policy_.delay_s = 0;
  ReplicaTraits filtered = marked();
  filtered.wants_no_keys = true;
  replicas_.add(1, marked(), true, now_);
  replicas_.add(2, filtered, false, now_ + 1);
  replicas_.add(3, {}, true, now_ + 2);
  replicas_.add(4, marked(), true, now_ + 3);
  now_ += 10;
  EXPECT_THAT(begin().ids, ElementsAre(1, 4));
  const auto second = begin();
  EXPECT_THAT(second.ids, ElementsAre(2));
  EXPECT_FALSE(second.has_keys);
  EXPECT_THAT(begin().ids, ElementsAre(3));
  EXPECT_FALSE(replicas_.due(policy_, now_));
}

TEST_F(ReplicasTest, FilteredSnapshotIsMarkedWithoutDiskless) {
  policy_.is_diskless = false;
  ReplicaTraits filtered = marked();
  filtered.wants_no_keys = true;
  replicas_.add(1, filtered, false, now_);
  EXPECT_EQ(begin().form, SnapshotForm::kMarked);
}

TEST_F(ReplicasTest, AMarkedSnapshotIsFollowedByAnAck) {
  policy_.delay_s = 0;
  replicas_.add(1, marked(), true, now_);
  const auto batch = begin();
  EXPECT_EQ(replicas_.find(1)->state, ReplicaState::kSnapshot);
  EXPECT_THAT(replicas_.finish_snapshot(batch, now_), ElementsAre(1));
  EXPECT_EQ(replicas_.find(1)->state, ReplicaState::kAwaitsAck);
  EXPECT_EQ(replicas_.count_acked(0), 0);
  EXPECT_TRUE(replicas_.ack(1, {10, std::nullopt}, now_));
  EXPECT_FALSE(replicas_.ack(1, {11, std::nullopt}, now_));
  EXPECT_EQ(replicas_.count_acked(11), 1);
  EXPECT_EQ(replicas_.count_acked(12), 0);
}

TEST_F(ReplicasTest, AnAckMayComeBeforeTheChildIsSeenToHaveEnded) {
  policy_.delay_s = 0;
  replicas_.add(1, marked(), true, now_);
  const auto batch = begin();
  EXPECT_FALSE(replicas_.ack(1, {5, std::nullopt}, now_));
  EXPECT_THAT(replicas_.finish_snapshot(batch, now_), ElementsAre(1));
  EXPECT_EQ(replicas_.find(1)->state, ReplicaState::kOnline);
}

TEST_F(ReplicasTest, SendsNothingToReplicasThatHaveLeft) {
  policy_.delay_s = 0;
  replicas_.add(1, marked(), true, now_);
  replicas_.add(2, {}, true, now_);
  auto batch = begin();
  replicas_.remove(1);
  EXPECT_THAT(replicas_.finish_snapshot(batch, now_), IsEmpty());
  batch = begin();
  EXPECT_THAT(replicas_.finish_snapshot(batch, now_), ElementsAre(2));
  EXPECT_EQ(replicas_.find(2)->state, ReplicaState::kFile);
  replicas_.go_online(2, now_);
  EXPECT_EQ(replicas_.find(2)->state, ReplicaState::kOnline);
  replicas_.go_online(7, now_);
  EXPECT_FALSE(replicas_.ack(7, {1, std::nullopt}, now_));
}

TEST_F(ReplicasTest, AcksNeverGoBack) {
  replicas_.add_online(1, marked(), 100, now_);
  replicas_.ack(1, {50, 40}, now_);
  EXPECT_EQ(replicas_.count_acked(100), 1);
  EXPECT_EQ(replicas_.count_synced(40), 1);
  replicas_.ack(1, {120, 30}, now_);
  EXPECT_EQ(replicas_.count_synced(40), 1);
  EXPECT_EQ(replicas_.count_synced(41), 0);
}

TEST_F(ReplicasTest, LastAckTellsWhetherTheLogFails) {
  replicas_.add_online(1, marked(), 100, now_);
  EXPECT_TRUE(replicas_.find(1)->log_works);
  replicas_.ack(1, {100, std::nullopt, true}, now_);
  EXPECT_FALSE(replicas_.find(1)->log_works);
  replicas_.ack(1, {100, std::nullopt}, now_);
  EXPECT_TRUE(replicas_.find(1)->log_works);
}

TEST_F(ReplicasTest, AGoodReplicaHasSpokenLately) {
  replicas_.add_online(1, marked(), 0, now_);
  replicas_.add(2, marked(), true, now_);
  EXPECT_EQ(replicas_.count_good(1, now_), 1);
  EXPECT_EQ(replicas_.count_good(1, now_ + 2 * core::kSecondUs - 1), 1);
  EXPECT_EQ(replicas_.count_good(1, now_ + 2 * core::kSecondUs), 0);
  replicas_.ack(1, {0, std::nullopt}, now_ + 2 * core::kSecondUs);
  EXPECT_EQ(replicas_.count_good(1, now_ + 2 * core::kSecondUs), 1);
}

TEST_F(ReplicasTest, SilenceEndsLinksThatMustAcknowledge) {
  policy_.delay_s = 0;
  replicas_.add_online(1, marked(), 0, now_);
  replicas_.add(2, marked(), true, now_);
  const auto batch = begin();
  // A replica that has sent SYNC instead of PSYNC need not acknowledge.
  replicas_.add(3, {}, false, now_);
  replicas_.go_online(3, now_);
  const int64_t late = now_ + 61 * core::kSecondUs;
  EXPECT_THAT(replicas_.timed_out(60, now_ + 60 * core::kSecondUs), IsEmpty());
  EXPECT_THAT(replicas_.timed_out(60, late), ElementsAre(1));
  // Replica 2 loads its snapshot, and sends empty lines meanwhile.
  replicas_.finish_snapshot(batch, late);
  EXPECT_THAT(replicas_.timed_out(60, late + core::kSecondUs), ElementsAre(1));
  replicas_.heard(2, late + 50 * core::kSecondUs);
  EXPECT_THAT(replicas_.timed_out(60, late + 100 * core::kSecondUs), ElementsAre(1));
  EXPECT_THAT(replicas_.timed_out(60, late + 111 * core::kSecondUs), ElementsAre(1, 2));
  // A replica that has acknowledged once times out if it stops sending acknowledgements.
  replicas_.ack(3, {1, std::nullopt}, late);
  EXPECT_THAT(replicas_.timed_out(60, late + 61 * core::kSecondUs), ElementsAre(1, 3));
}

// A replica goes online when it has received the last byte of a file, before it has loaded it.
TEST_F(ReplicasTest, EmptyLinesCountUntilTheSnapshotIsLoaded) {
  replicas_.add(1, {}, true, now_);
  replicas_.finish_snapshot(begin(), now_);
  replicas_.go_online(1, now_);
  replicas_.heard(1, now_ + 50 * core::kSecondUs);
  EXPECT_THAT(replicas_.timed_out(60, now_ + 100 * core::kSecondUs), IsEmpty());
  EXPECT_EQ(replicas_.count_good(10, now_ + 55 * core::kSecondUs), 1);
  now_ += 100 * core::kSecondUs;
  replicas_.ack(1, {1, std::nullopt}, now_);
  replicas_.heard(1, now_ + 50 * core::kSecondUs);
  EXPECT_THAT(replicas_.timed_out(60, now_ + 61 * core::kSecondUs), ElementsAre(1));
}

TEST_F(ReplicasTest, EmptyLinesGoToThoseWhoWaitAndNotIntoASnapshot) {
  replicas_.add(1, marked(), true, now_);
  EXPECT_THAT(replicas_.keep_alive(), ElementsAre(1));
  now_ += 5 * core::kSecondUs;
  begin();
  replicas_.add(2, {}, true, now_);
  EXPECT_THAT(replicas_.keep_alive(), ElementsAre(2));
  const auto batch = begin();
  EXPECT_THAT(replicas_.keep_alive(), ElementsAre(2));
  replicas_.finish_snapshot(batch, now_);
  EXPECT_THAT(replicas_.keep_alive(), IsEmpty());
}

}  // namespace
}  // namespace server
