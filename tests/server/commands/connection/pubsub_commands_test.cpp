// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "persistence/journal.h"
#include "protocol/error_texts.h"
#include "server/commands/server/introspection_commands.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class PubSubCommandsTest : public CommandTest {
 protected:
  // Returns the confirmation of a subscription. A `type` of '*' gives the form of RESP2, '>' that
  // of RESP3.
  static std::string confirmation(std::string_view word, std::string_view name, int count,
                                  char type = '*') {
    return std::string(1, type) + "3\r\n" + bulk(word) + bulk(name) + integer(count);
  }
  static std::string refused(std::string_view name) {
    return error("ERR Can't execute '" + std::string(name) +
                 "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                 "this context");
  }
};

TEST_F(PubSubCommandsTest, ConfirmationsCountChannelsAndPatternsTogether) {
  EXPECT_EQ(run({"SUBSCRIBE", "a", "b", "a"}), confirmation("subscribe", "a", 1) +
                                                   confirmation("subscribe", "b", 2) +
                                                   confirmation("subscribe", "a", 2));
  EXPECT_EQ(run({"PSUBSCRIBE", "p*"}), confirmation("psubscribe", "p*", 3));
  EXPECT_EQ(run({"SSUBSCRIBE", "s"}), confirmation("ssubscribe", "s", 1));
  EXPECT_EQ(run({"UNSUBSCRIBE", "zz"}), confirmation("unsubscribe", "zz", 3));
  EXPECT_EQ(run({"UNSUBSCRIBE"}),
            confirmation("unsubscribe", "a", 2) + confirmation("unsubscribe", "b", 1));
  EXPECT_EQ(run({"UNSUBSCRIBE"}), "*3\r\n" + bulk("unsubscribe") + kNull + integer(1));
  EXPECT_EQ(run({"PUNSUBSCRIBE"}), confirmation("punsubscribe", "p*", 0));
  EXPECT_EQ(run({"SUNSUBSCRIBE", "s"}), confirmation("sunsubscribe", "s", 0));
  EXPECT_EQ(run({"PUBSUB", "CHANNELS"}), "*0\r\n");
}

TEST_F(PubSubCommandsTest, Resp3ConfirmsByPushAndRestrictsNothing) {
  run({"HELLO", "3"});
  EXPECT_EQ(run({"SUBSCRIBE", "a"}), confirmation("subscribe", "a", 1, '>'));
  EXPECT_EQ(run({"GET", "k"}), "_\r\n");
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"PUNSUBSCRIBE"}), ">3\r\n" + bulk("punsubscribe") + "_\r\n" + integer(1));
  run({"HELLO", "2"});
  EXPECT_EQ(run({"GET", "k"}), refused("get"));
}

TEST_F(PubSubCommandsTest, SubscribersThatSpeakResp2MayDoLittleElse) {
  run({"SUBSCRIBE", "a"});
  EXPECT_EQ(run({"GET", "k"}), refused("get"));
  EXPECT_EQ(run({"CLIENT", "LIST"}), refused("client|list"));
  EXPECT_EQ(run({"MULTI"}), refused("multi"));
  EXPECT_EQ(run({"HELLO", "3"}), refused("hello"));
  EXPECT_EQ(run({"PING"}), array({bulk("pong"), bulk("")}));
  EXPECT_EQ(run({"PING", "x"}), array({bulk("pong"), bulk("x")}));
  EXPECT_EQ(run({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(run_as_other({"PUBSUB", "NUMSUB", "a"}), array({bulk("a"), integer(0)}));
}

TEST_F(PubSubCommandsTest, TheLastUnsubscriptionLeavesTheMode) {
  run({"SUBSCRIBE", "a"});
  run({"SSUBSCRIBE", "s"});
  run({"UNSUBSCRIBE"});
  EXPECT_EQ(run({"GET", "k"}), refused("get"));
  run({"SUNSUBSCRIBE"});
  EXPECT_EQ(run({"GET", "k"}), kNull);
}

TEST_F(PubSubCommandsTest, PublishCountsEverySubscription) {
  run({"SUBSCRIBE", "a"});
  run({"PSUBSCRIBE", "a*", "?"});
  EXPECT_EQ(run_as_other({"PUBLISH", "a", "x"}), integer(3));
  EXPECT_EQ(run_as_other({"PUBLISH", "ab", "x"}), integer(1));
  EXPECT_EQ(run_as_other({"SPUBLISH", "a", "x"}), integer(0));
  EXPECT_EQ(run_as_other({"PUBLISH", "c\r\n", ""}), integer(0));
}

TEST_F(PubSubCommandsTest, PubSubTellsWhoListens) {
  run({"SUBSCRIBE", "a1"});
  run({"PSUBSCRIBE", "p*"});
  run({"SSUBSCRIBE", "s1"});
  EXPECT_EQ(run_as_other({"PUBSUB", "CHANNELS", "a?"}), array({bulk("a1")}));
  EXPECT_EQ(run_as_other({"PUBSUB", "CHANNELS", "b*"}), "*0\r\n");
  EXPECT_EQ(run_as_other({"PUBSUB", "NUMPAT"}), integer(1));
  EXPECT_EQ(run_as_other({"PUBSUB", "NUMSUB", "a1", "p*"}),
            array({bulk("a1"), integer(1), bulk("p*"), integer(0)}));
  EXPECT_EQ(run_as_other({"PUBSUB", "SHARDCHANNELS"}), array({bulk("s1")}));
  EXPECT_EQ(run_as_other({"PUBSUB", "SHARDNUMSUB", "s1"}), array({bulk("s1"), integer(1)}));
  EXPECT_EQ(run_as_other({"PUBSUB", "CHANNELS", "a", "b"}),
            error(protocol::wrong_subcommand("CHANNELS", "PUBSUB")));
  const std::string info = run_as_other({"INFO", "stats"});
  for (const char* line : {"\r\npubsub_channels:1\r\n", "\r\npubsub_patterns:1\r\n",
                           "\r\npubsubshard_channels:1\r\n"}) {
    EXPECT_NE(info.find(line), std::string::npos) << line;
  }
}

TEST_F(PubSubCommandsTest, SubscribersAreClientsOfTheirOwnType) {
  run({"SUBSCRIBE", "a", "b"});
  run({"PSUBSCRIBE", "p*"});
  const std::string list = run_as_other({"CLIENT", "LIST", "TYPE", "pubsub"});
  EXPECT_NE(list.find("id=1 "), std::string::npos);
  EXPECT_NE(list.find(" flags=P db=0 sub=2 psub=1 ssub=0 "), std::string::npos) << list;
  EXPECT_EQ(list.find("id=2 "), std::string::npos);
  EXPECT_EQ(run_as_other({"CLIENT", "LIST", "TYPE", "normal"}).find("id=1 "), std::string::npos);
  EXPECT_EQ(run_as_other({"CLIENT", "KILL", "TYPE", "pubsub"}), integer(1));
  EXPECT_TRUE(client_->session->client->kill_requested.load());
}

TEST_F(PubSubCommandsTest, SubscriptionsInATransactionAnswerInItsReply) {
  run({"MULTI"});
  run({"SUBSCRIBE", "a"});
  run({"GET", "k"});
  EXPECT_EQ(run({"EXEC"}), "*2\r\n" + confirmation("subscribe", "a", 1) + kNull);
}

TEST_F(PubSubCommandsTest, ClientReplyDoesNotSilenceConfirmations) {
  run({"CLIENT", "REPLY", "OFF"});
  EXPECT_EQ(run({"SUBSCRIBE", "a"}), confirmation("subscribe", "a", 1));
  EXPECT_EQ(run({"SUBSCRIBE"}), "");
  EXPECT_EQ(run({"PING"}), "");
  EXPECT_EQ(run({"UNSUBSCRIBE", "a"}), confirmation("unsubscribe", "a", 0));
  run({"CLIENT", "REPLY", "ON"});
  run({"HELLO", "3"});
  EXPECT_EQ(run({"CLIENT", "REPLY", "SKIP"}), "");
  EXPECT_EQ(run({"SUBSCRIBE", "a"}), confirmation("subscribe", "a", 1, '>'));
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

TEST_F(PubSubCommandsTest, TheEndOfASessionEndsItsSubscriptions) {
  {
    TestClient visitor(*this);
    visitor.run({"SUBSCRIBE", "a"});
    visitor.run({"PSUBSCRIBE", "a"});
    visitor.run({"SSUBSCRIBE", "a"});
    EXPECT_EQ(run({"PUBLISH", "a", "x"}), integer(2));
  }
  EXPECT_EQ(run({"PUBLISH", "a", "x"}), integer(0));
  EXPECT_EQ(run({"SPUBLISH", "a", "x"}), integer(0));
}

TEST_F(PubSubCommandsTest, PublishWaitsForTheEndOfAPauseAndOfCongestion) {
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  run_as_other({"PUBLISH", "a", "x"});
  EXPECT_EQ(other_->last_result.outcome, Outcome::kHeldBack);
  run({"CLIENT", "UNPAUSE"});
  run({"SUBSCRIBE", "a"});
  const std::string big(20 << 20, 'x');
  EXPECT_EQ(run_as_other({"PUBLISH", "a", big}), integer(1));
  run_as_other({"PUBLISH", "a", "x"});
  EXPECT_EQ(other_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(run_as_other({"GET", "k"}), kNull);
  while (pubsub_.take(0)) {
  }
  EXPECT_EQ(run_as_other({"PUBLISH", "a", "x"}), integer(1));
}

TEST_F(PubSubCommandsTest, MessagesGoToReplicasAndIntoNoLog) {
  struct Stream final : persistence::StreamSink {
    void append(std::string_view bytes) override { text += bytes; }
    std::string text;
  } stream;
  journal_.set_active(true);
  journal_.set_second_sink(&stream);
  run({"PUBLISH", "a", "x"});
  run({"SPUBLISH", "b", ""});
  EXPECT_EQ(stream.text, array({bulk("SELECT"), bulk("0")}) +
                             array({bulk("PUBLISH"), bulk("a"), bulk("x")}) +
                             array({bulk("SPUBLISH"), bulk("b"), bulk("")}));
  EXPECT_EQ(journal_.end_offset(), 0U);
  journal_.set_second_sink(nullptr);
}

TEST_F(PubSubCommandsTest, AJournalCannotSubscribe) {
  client_->session->origin = CommandOrigin::kForeignJournal;
  EXPECT_THAT(run({"SUBSCRIBE", "a"}), is_error("ERR", "subscribe"));
  EXPECT_EQ(run({"PUBLISH", "a", "x"}), integer(0));
}

TEST_F(PubSubCommandsTest, ShardChannelsAreNoKeys) {
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "SPUBLISH", "a", "b"}), error(kNoKeyArguments));
}

}  // namespace
}  // namespace server
