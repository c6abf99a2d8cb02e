// SPDX-License-Identifier: MIT
//
// Tests the delivery of messages to the sockets of subscribers: the order of the messages, and the
// memory of a subscriber that does not read.
#include "server/net/message_delivery.h"

#include <gmock/gmock.h>

#include <string>

#include "server/session/clients.h"
#include "server/session/observer.h"
#include "server/session/session.h"
#include "tests/support/captured_log.h"
#include "tests/support/clients_fixture.h"
#include "tests/support/error_matcher.h"

namespace server::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kMiB = size_t{1} << 20;

class MessageDeliveryTest : public ClientsFixture {
 protected:
  void limit(const std::string& words) {
    ASSERT_EQ(run({"CONFIG", "SET", "client-output-buffer-limit", words}), kOk);
  }
  std::string publish(const std::string& text) { return run({"PUBLISH", "c", text}); }
  // Publishes the text, then lets the I/O thread deliver it.
  std::string publish_and_serve(const std::string& text) {
    const std::string reply = publish(text);
    serve();
    return reply;
  }
  static std::string message(const std::string& text) { return "[message, c, " + text + "]"; }
};

TEST_F(MessageDeliveryTest, EverySubscriberSeesTheOrderOfPublishing) {
  Remote& first = connect({"SUBSCRIBE c"});
  Remote& second = connect({"HELLO 3", "SUBSCRIBE c"});
  Remote& third = connect({"PSUBSCRIBE *"});
  for (const char* const text : {"1", "2", "3"}) EXPECT_EQ(publish(text), integer(3));
  EXPECT_THAT(first.news(), ElementsAre(message("1"), message("2"), message("3")));
  EXPECT_THAT(second.news(),
              ElementsAre(">" + message("1"), ">" + message("2"), ">" + message("3")));
  EXPECT_THAT(third.news(),
              ElementsAre("[pmessage, *, c, 1]", "[pmessage, *, c, 2]", "[pmessage, *, c, 3]"));
}

TEST_F(MessageDeliveryTest, NothingComesBehindTheLastUnsubscription) {
  Remote& subscriber = connect({"SUBSCRIBE c"});
  publish("early");
  EXPECT_EQ(subscriber.pipeline({"UNSUBSCRIBE c", "ECHO e"}), "[unsubscribe, c, :0] | e");
  publish("late");
  EXPECT_THAT(subscriber.news(), ElementsAre(message("early")));
}

TEST_F(MessageDeliveryTest, AMessageForASubscriptionThatHasEndedIsDropped) {
  Remote& subscriber = connect({"SUBSCRIBE c"});
  publish("text");
  // The published message waits in the inbox while the thread reads UNSUBSCRIBE.
  subscriber.send(request_of({"UNSUBSCRIBE", "c"}) + request_of({"SUBSCRIBE", "c"}));
  subscriber.connection->on_ready(EPOLLIN);
  end_round();
  EXPECT_EQ(subscriber.replies(), "[unsubscribe, c, :0] | [subscribe, c, :1]");
  EXPECT_THAT(subscriber.news(), IsEmpty());
}

TEST_F(MessageDeliveryTest, ASubscriberThatPublishesHearsItself) {
  Remote& both = connect({"HELLO 3", "SUBSCRIBE c"});
  EXPECT_EQ(both.pipeline({"PUBLISH c x", "SET k v", "GET k"}), ":1 | +OK | v");
  EXPECT_THAT(both.news(), ElementsAre(">" + message("x")));
}

TEST_F(MessageDeliveryTest, SubscribedWriterGetsItsReplyFirst) {
  ASSERT_EQ(run({"CONFIG", "SET", "notify-keyspace-events", "KA"}), kOk);
  Remote& both = connect({"HELLO 3", "SUBSCRIBE __keyspace@0__:k"});
  both.send(request_of({"MULTI"}) + request_of({"SET", "k", "1"}) + request_of({"INCR", "k"}) +
            request_of({"EXEC"}));
  serve();
  const auto replies = replies_in(both.received());
  ASSERT_EQ(replies.size(), 6U);
  EXPECT_EQ(reply_text(replies[3]), "[+OK, :2]");
  EXPECT_EQ(reply_text(replies[4]), ">[message, __keyspace@0__:k, set]");
  EXPECT_EQ(reply_text(replies[5]), ">[message, __keyspace@0__:k, incrby]");
}

TEST_F(MessageDeliveryTest, MessagesStandBehindRepliesThatWaitForTheLog) {
  Remote& subscriber = connect({"HELLO 3"});
  log_.end = 10;
  subscriber.send(request_of({"SUBSCRIBE", "c"}) + request_of({"SET", "k", "1"}));
  serve();
  EXPECT_EQ(publish_and_serve("x"), integer(1));
  subscriber.send(request_of({"UNSUBSCRIBE"}));
  serve();
  EXPECT_EQ(subscriber.received(), "");
  log_.safe = 10;
  thread_.log_waker.wake();
  EXPECT_EQ(subscriber.replies(), ">[subscribe, c, :1] | +OK | >[unsubscribe, c, :0]");
  EXPECT_THAT(subscriber.news(), ElementsAre(">" + message("x")));
}

TEST_F(MessageDeliveryTest, ASlowSubscriberIsClosedAtTheHardLimit) {
  CapturedLog log;
  limit("pubsub 5mb 0 0");
  Remote& slow = connect({"SUBSCRIBE c"});
  Remote& quick = connect({"PSUBSCRIBE *"});
  const std::string text(100'000, 'x');
  size_t published = 0;
  size_t heard = 0;
  while (!slow.is_closed() && published < 1000) {
    EXPECT_EQ(publish_and_serve(text), integer(2));
    ++published;
    heard += quick.news().size();
  }
  EXPECT_GT(published, 40U);
  EXPECT_LT(published, 70U);
  EXPECT_EQ(heard, published) << "no other client waits";
  EXPECT_EQ(publish("end"), integer(1));
  EXPECT_THAT(quick.news(), ElementsAre("[pmessage, *, c, end]"));
  EXPECT_EQ(info("stats", "client_output_buffer_limit_disconnections"), "1");
  EXPECT_NE(log.text().find("reached its output buffer limit"), std::string::npos);
}

TEST_F(MessageDeliveryTest, SlowSubscriberIsClosedAtTheSoftLimit) {
  limit("pubsub 0 1mb 1");
  Remote& slow = connect({"SUBSCRIBE c"});
  for (int i = 0; i < 30; ++i) publish_and_serve(std::string(100'000, 'x'));
  EXPECT_FALSE(slow.is_closed());
  advance_ms(2001);
  // The periodic task closes the slow client, even if no further message is published.
  tick();
  EXPECT_TRUE(slow.is_closed());
  EXPECT_EQ(run({"PUBSUB", "NUMSUB", "c"}), array({bulk("c"), integer(0)}));
}

TEST_F(MessageDeliveryTest, ASubscriberThatDrainsInTimeIsLeftAlone) {
  limit("pubsub 0 1mb 1");
  Remote& slow = connect({"SUBSCRIBE c"});
  size_t heard = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 30; ++i) publish_and_serve(std::string(100'000, 'x'));
    advance_ms(900);
    tick();
    while (const size_t more = slow.news().size()) heard += more;
  }
  EXPECT_FALSE(slow.is_closed());
  EXPECT_EQ(heard, 150U);
}

TEST_F(MessageDeliveryTest, FloodStaysWithinTheSubscribersLimits) {
  limit("pubsub 1mb 0 0");
  constexpr size_t kSilent = 50;
  for (size_t i = 0; i < kSilent; ++i) connect({"SUBSCRIBE c"});
  uint64_t most = 0;
  for (int i = 0; i < 200; ++i) {
    publish_and_serve(std::string(10'000, 'x'));
    uint64_t sum = 0;
    for (const auto& client : clients_.list()) {
      sum += client->output_buffer_capacity_bytes;
      EXPECT_LE(client->output_buffer_bytes, kMiB);
    }
    most = std::max(most, sum);
  }
  // A growing buffer doubles its capacity, so the capacity of each buffer may be twice the limit of
  // 1 MiB.
  EXPECT_LE(most, 2 * kSilent * kMiB);
  EXPECT_EQ(publish("end"), integer(0)) << "all are closed";
}

TEST_F(MessageDeliveryTest, ASlowListenerToKeysIsClosed) {
  limit("pubsub 1mb 1mb 1");
  ASSERT_EQ(run({"CONFIG", "SET", "notify-keyspace-events", "KEA"}), kOk);
  Remote& stuck = connect({"PSUBSCRIBE __key*"});
  const std::string key(10'000, 'k');
  for (int i = 0; i < 300 && !stuck.is_closed(); ++i) {
    run({"SET", key, "v"});
    serve();
    EXPECT_LE(stuck.client().output_buffer_bytes, kMiB + 50'000);
  }
  EXPECT_TRUE(stuck.is_closed());
}

TEST_F(MessageDeliveryTest, BigMessagesWaitForTheSubscribersThread) {
  limit("pubsub 0 0 0");
  Remote& subscriber = connect({"SUBSCRIBE c"});
  Remote& publisher = connect();
  std::string bytes;
  for (const char letter : {'A', 'B', 'C', 'D'}) {
    publisher.send_all(request_of({"PUBLISH", "c", std::string(20 * kMiB, letter)}));
    bytes += subscriber.received();
  }
  bytes += subscriber.received_all();
  const auto replies = replies_in(bytes);
  ASSERT_EQ(replies.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(replies[i].elements.at(2).text ==
                std::string(20 * kMiB, static_cast<char>('A' + i)));
  }
  EXPECT_EQ(publisher.replies(), ":1 | :1 | :1 | :1");
}

TEST_F(MessageDeliveryTest, SubscribersAreKilledByTheirType) {
  Remote& subscriber = connect({"SUBSCRIBE c"});
  Remote& other = connect();
  EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "pubsub"}), integer(1));
  EXPECT_EQ(subscriber.replies(), "(end)");
  EXPECT_EQ(other.call("PING"), "+PONG");
  EXPECT_EQ(publish("x"), integer(0));
}

TEST_F(MessageDeliveryTest, AReplicaHandsItsLeadersMessagesOn) {
  Remote& subscriber = connect({"SUBSCRIBE c"});
  client_->session->origin = CommandOrigin::kOwnJournal;
  for (const char* const line : {"PUBLISH c 1", "MULTI", "SET k v", "PUBLISH c end", "EXEC"}) {
    run(words_in(line));
  }
  EXPECT_THAT(subscriber.news(), ElementsAre(message("1"), message("end")));
  EXPECT_EQ(run_as_other({"GET", "k"}), bulk("v"));
}

class MonitorDeliveryTest : public ClientsFixture {
 protected:
  static std::string line(const std::string& words) {
    return "+1700000000.000000 [0 127.0.0.1:1] " + words;
  }
  Remote& monitor_ = connect({"MONITOR"});
};

TEST_F(MonitorDeliveryTest, AMonitorSeesTheCommandsOfOthers) {
  run({"SET", "k", "v"});
  run_as_other({"GET", "k"});
  EXPECT_EQ(monitor_.replies(), line("\"SET\" \"k\" \"v\"") + " | " + line("\"GET\" \"k\""));
}

TEST_F(MonitorDeliveryTest, AMonitorReachesNoKeys) {
  const auto refused = is_error("ERR", "keyspace");
  for (const char* const command : {"GET k", "SET k v", "PUBLISH c m", "KEYS *"}) {
    EXPECT_THAT(monitor_.call(command), refused);
  }
  EXPECT_EQ(monitor_.call("RESET"), "+RESET");
  EXPECT_EQ(monitor_.call("GET k"), "nil");
}

TEST_F(MonitorDeliveryTest, ASecondMonitorHasNoReply) {
  EXPECT_EQ(monitor_.pipeline({"MONITOR", "RESET"}), "+RESET");
}

TEST_F(MonitorDeliveryTest, AMonitorLeavesByReset) {
  EXPECT_THAT(run({"CLIENT", "LIST"}), testing::HasSubstr(" flags=O "));
  monitor_.call("RESET");
  run({"ECHO", "unseen"});
  EXPECT_EQ(monitor_.call("PING"), "+PONG");
  EXPECT_THAT(run({"CLIENT", "LIST"}), testing::Not(testing::HasSubstr(" flags=O ")));
}

TEST_F(MonitorDeliveryTest, AKilledMonitorIsForgotten) {
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", monitor_.id_text()}), integer(1));
  EXPECT_THAT(monitor_.replies(), testing::EndsWith("(end)"));
  EXPECT_THAT(run({"CLIENT", "LIST"}), testing::Not(testing::HasSubstr(" flags=O ")));
  EXPECT_EQ(observer_.monitors().count(), 0U);
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

TEST_F(MonitorDeliveryTest, AMonitorThatDoesNotReadIsClosed) {
  const std::string value(100'000, 'v');
  for (int i = 0; i < 1000 && !monitor_.is_closed(); ++i) {
    EXPECT_EQ(run({"SET", "k", value}), kOk);
    serve();
    EXPECT_LE(monitor_.client().output_buffer_bytes, 40 * kMiB);
  }
  EXPECT_TRUE(monitor_.is_closed());
  EXPECT_EQ(observer_.monitors().count(), 0U);
}

TEST_F(MonitorDeliveryTest, AMonitorWhoseLinesWereLostIsClosed) {
  const std::string value(100'000, 'v');
  // While the SETs run, the I/O thread delivers no MONITOR lines, so its inbox outgrows the limit.
  for (int i = 0; i < 450; ++i) run({"SET", "k", value});
  serve();
  EXPECT_TRUE(monitor_.is_closed());
}

TEST_F(MonitorDeliveryTest, AllMonitorsSeeOneOrder) {
  Remote& second = connect({"MONITOR"});
  monitor_.replies();
  for (int i = 0; i < 20; ++i) {
    run({"ECHO", std::to_string(i)});
    run_as_other({"ECHO", std::to_string(i)});
  }
  const std::string seen = monitor_.replies();
  EXPECT_FALSE(seen.empty());
  EXPECT_EQ(second.replies(), seen);
}

}  // namespace
}  // namespace server::net
