// SPDX-License-Identifier: MIT
//
// Tests the events of keys that commands find, miss and change.
#include <algorithm>
#include <utility>

#include "core/keyspace/keyspace.h"
#include "protocol/reply_parser.h"
#include "server/base/config/event_class.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/context.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using Texts = std::vector<std::string>;

// The classes of events that the letter A of notify-keyspace-events selects.
constexpr uint32_t kClassesOfA = ~0U & ~(kEventsByKey | kEventsByEvent | kMissEvents | kNewEvents);

class KeyNoticesTest : public CommandTest {
 protected:
  KeyNoticesTest() {
    pubsub_.subscribe(SubscriptionKind::kPattern, "__keyevent@*", {1000, 0});
    keyspace_.set_hooks([this](unsigned database, std::string_view key) {
      key_events_.notify(KeyEvent::kExpired, database, key);
    });
    key_events_.choose(~0U & ~uint32_t{kEventsByKey});
  }

  // Returns "event key" for each message that was published since the last call.
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

TEST_F(KeyNoticesTest, MovePublishesInBothDatabases) {
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
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  run({"PING"});
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
  key_events_.choose(0);
  run({"SET", "k", "v"});
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
}

TEST_F(KeyNoticesTest, FiltersTellOfTheirChanges) {
  key_events_.choose(~0U & ~uint32_t{kEventsByKey});
  const auto words_of = [](const std::string& line) {
    std::vector<std::string> words;
    for (size_t start = 0; start < line.size();) {
      const size_t end = std::min(line.find(' ', start), line.size());
      words.push_back(line.substr(start, end - start));
      start = end + 1;
    }
    return words;
  };
  for (const std::string line : {"BF.RESERVE r 0.01 100",
                                 "BF.RESERVE r 0.01 100",
                                 "BF.ADD r a",
                                 "BF.ADD r a",
                                 "BF.MADD r a b",
                                 "BF.MADD r a b",
                                 "BF.ADD new a",
                                 "BF.EXISTS r a",
                                 "BF.EXISTS none a",
                                 "BF.INSERT ins ITEMS a b",
                                 "BF.INSERT ins NOCREATE ITEMS a",
                                 "BF.KADD 2 r kadd z",
                                 "BF.MERGE merged r new",
                                 "BF.CLEAR merged",
                                 "BF.RESERVE d 0.01 100 DELETABLE",
                                 "BF.ADD d x",
                                 "BF.DEL d x",
                                 "BF.DEL d x",
                                 "DEL r",
                                 "BF.ADD text",
                                 "EXPIRE d 100"}) {
    run(words_of(line));
  }
  EXPECT_EQ(taken(), (Texts{"new r",
                            "bloom.reserve r",
                            "bloom.add r",
                            "bloom.add r",
                            "new new",
                            "bloom.add new",
                            "bloom.reserve new",
                            "keymiss none",
                            "new ins",
                            "bloom.add ins",
                            "bloom.reserve ins",
                            "bloom.add r",
                            "new kadd",
                            "bloom.add kadd",
                            "bloom.reserve kadd",
                            "new merged",
                            "bloom.merge merged",
                            "bloom.clear merged",
                            "new d",
                            "bloom.reserve d",
                            "bloom.add d",
                            "bloom.del d",
                            "del r",
                            "expire d"}));
}

TEST_F(KeyNoticesTest, AddsBelongToTheClassesOfAllKeysAndOfModules) {
  const Texts both{"bloom.add f", "bloom.reserve f"};
  using Choice = std::pair<uint32_t, bool>;
  for (const auto& [classes, is_notified] : {Choice{kGenericEvents, true},
                                             {kModuleEvents, true},
                                             {kStringEvents | kExpiredEvents, false},
                                             {kClassesOfA, true}}) {
    key_events_.choose(kEventsByEvent | classes);
    run({"BF.ADD", "f", "a"});
    EXPECT_EQ(taken(), is_notified ? both : Texts{}) << classes;
    run({"DEL", "f"});
    taken();
  }
}

TEST_F(KeyNoticesTest, ALoadedFilterTellsSo) {
  run({"BF.ADD", "f", "a"});
  key_events_.choose(kEventsByEvent | kClassesOfA);
  taken();
  size_t chunks = 0;
  std::string cursor = "0";
  while (true) {
    const std::string reply = run({"BF.SCANDUMP", "f", cursor});
    protocol::ReplyParser parser;
    ASSERT_EQ(parser.parse(reply), protocol::ReplyParser::Status::kReply);
    ASSERT_EQ(parser.reply().elements.size(), 2U);
    cursor = std::to_string(parser.reply().elements[0].integer);
    if (cursor == "0") break;
    EXPECT_EQ(run({"BF.LOADCHUNK", "g", cursor, parser.reply().elements[1].text}), kOk);
    ++chunks;
  }
  EXPECT_GT(chunks, 1U);
  EXPECT_EQ(taken(), Texts(chunks, "bloom.load g"));
}

}  // namespace
}  // namespace server
