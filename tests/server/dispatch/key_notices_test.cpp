// SPDX-License-Identifier: MIT
//
// What commands tell of the keys that they find, miss and change.
#include "server/config/event_class.h"
#include "server/dispatch/context.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using Texts = std::vector<std::string>;

class KeyNoticesTest : public CommandTest {
 protected:
  KeyNoticesTest() {
    pubsub_.subscribe(SubscriptionKind::kPattern, "__keyevent@*", {1000, 0});
    keyspace_.set_hooks([this](unsigned database, std::string_view key) {
      key_events_.tell(KeyEvent::kExpired, database, key);
    });
    key_events_.choose(~0U & ~uint32_t{kEventsByKey});
  }

  // "event key" of each message.
  Texts taken() {
    Texts texts;
    while (const auto delivery = pubsub_.take(0)) {
      const std::string& head = delivery->message->head;
      const size_t event = head.rfind("__:") + 3;
      const std::string& payload = *delivery->message->payload;
      texts.push_back(head.substr(event, head.find("\r\n", event) - event) + " " +
                      payload.substr(0, payload.size() - 2));
    }
    return texts;
  }

  void expire_k() {
    run({"SET", "k", "v", "PX", "10"});
    advance_ms(11);
    taken();
  }
};

TEST_F(KeyNoticesTest, AReadDeletesTheExpiredKeyThatItMeets) {
  expire_k();
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(taken(), (Texts{"expired k", "keymiss k"}));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(KeyNoticesTest, AReadInATransactionDeletesItAtTheEnd) {
  expire_k();
  run({"MULTI"});
  run({"GET", "k"});
  run({"EXISTS", "k"});
  EXPECT_EQ(run({"EXEC"}), array({kNull, integer(0)}));
  EXPECT_EQ(taken(), (Texts{"expired k", "keymiss k", "keymiss k"}));
}

TEST_F(KeyNoticesTest, NothingIsDeletedWhileWritesPause) {
  expire_k();
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(taken(), (Texts{"keymiss k"}));
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

TEST_F(KeyNoticesTest, AReplicaLeavesItToItsLeader) {
  expire_k();
  state_.is_replica = true;
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(taken(), (Texts{"keymiss k"}));
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

TEST_F(KeyNoticesTest, AnAddThatTurnsAWindowTellsBoth) {
  run({"BF.RESERVE", "w", "0.01", "400", "WINDOW", "10"});
  run({"BF.ADD", "w", "a"});
  taken();
  advance_ms(2500);
  run({"BF.ADD", "w", "b"});
  EXPECT_EQ(taken(), (Texts{"bloom.turn w", "bloom.add w"}));
  run({"BF.ADD", "w", "c"});
  EXPECT_EQ(taken(), (Texts{"bloom.add w"}));
}

TEST_F(KeyNoticesTest, AReplicaTellsItsLeadersTurns) {
  run({"BF.RESERVE", "w", "0.01", "400", "WINDOW", "10"});
  run({"BF.ADD", "w", "a"});
  run_as_other({"WATCH", "w"});
  taken();
  client_->session->origin = CommandOrigin::kOwnJournal;
  const std::string start_ms = std::to_string(clock_.now_ms + 2500);
  EXPECT_EQ(run({"BF.TURN", "w", "1", start_ms}), kOk);
  EXPECT_EQ(taken(), (Texts{"bloom.turn w"}));
  run_as_other({"MULTI"});
  EXPECT_EQ(run_as_other({"EXEC"}), "*-1\r\n");
}

TEST_F(KeyNoticesTest, WithoutListenersAReadLeavesTheKeyToTheTick) {
  expire_k();
  key_events_.choose(0);
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

TEST_F(KeyNoticesTest, OBJECTMissesInSilence) {
  EXPECT_EQ(run({"OBJECT", "ENCODING", "none"}), kNull);
  EXPECT_TRUE(taken().empty());
  run({"TTL", "none"});
  EXPECT_EQ(taken(), (Texts{"keymiss none"}));
}

TEST_F(KeyNoticesTest, ARefusedCommandTellsNothing) {
  run({"SET", "k", "text"});
  taken();
  run({"INCR", "k"});
  run({"BF.ADD", "k", "item"});
  run({"SETBIT", "k", "-1", "1"});
  run({"RENAME", "none", "k"});
  run({"MULTI"});
  run({"SET", "k", "1"});
  run({"DISCARD"});
  EXPECT_TRUE(taken().empty());
}

TEST_F(KeyNoticesTest, BothDatabasesOfAMoveAreTold) {
  run({"SET", "k", "v"});
  taken();
  run({"MOVE", "k", "3"});
  EXPECT_EQ(taken(), (Texts{"new k", "move_from k", "move_to k"}));
}

TEST_F(KeyNoticesTest, CommandsOnDataWaitWhileMessagesPileUp) {
  const std::string big(20'000'000, 'x');
  run({"PUBLISH", "__keyevent@0__:x", big});
  EXPECT_TRUE(pubsub_.is_congested());
  run({"SET", "k", "v"});
  EXPECT_EQ(client_->last_outcome, Outcome::kHeldBack);
  run({"PING"});
  EXPECT_EQ(client_->last_outcome, Outcome::kDone);
  key_events_.choose(0);
  run({"SET", "k", "v"});
  EXPECT_EQ(client_->last_outcome, Outcome::kDone);
}

}  // namespace
}  // namespace server
