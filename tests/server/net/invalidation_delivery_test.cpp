// SPDX-License-Identifier: MIT
//
// Tests the invalidation messages that tracking clients receive, and their order among replies. The
// expected messages were measured on Redis 7.0.15; tests/system/data/tracking_test.py compares
// random sessions.
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "server/session/session.h"
#include "tests/support/clients_fixture.h"

namespace server::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string kAllKeys = ">[invalidate, nil]";

std::string invalidation(const std::string& keys) {
  return ">[invalidate, [" + keys + "]]";
}

class InvalidationDeliveryTest : public ClientsFixture {
 protected:
  void track(const std::string& options = "") {
    reader_.call("CLIENT TRACKING OFF");
    ASSERT_EQ(reader_.call("CLIENT TRACKING ON" + (options.empty() ? "" : " " + options)), "+OK");
  }
  // Runs the command `line` as another client. Returns the messages that the tracking client then
  // receives.
  Texts news_after(const std::string& line) {
    run(words_in(line));
    return reader_.news();
  }
  // Runs the command `read` as the tracking client, which must receive no message. Then runs
  // `write` as another client. Returns the messages that the tracking client then receives.
  Texts news_after_reading(const std::string& read, const std::string& write) {
    reader_.call(read);
    EXPECT_THAT(reader_.news(), IsEmpty()) << read;
    return news_after(write);
  }

  Remote& reader_ = connect({"HELLO 3", "CLIENT TRACKING ON"});
};

TEST_F(InvalidationDeliveryTest, ReadKeyIsInvalidatedOnce) {
  EXPECT_THAT(news_after_reading("GET k", "SET k 1"), ElementsAre(invalidation("k")));
  EXPECT_THAT(news_after("SET k 2"), IsEmpty());
  EXPECT_THAT(news_after_reading("GET k", "DEL k"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, EveryReadKeyIsInvalidated) {
  EXPECT_THAT(news_after_reading("MGET k l m k", "MSET k 1 l 2 m 3 n 4"),
              UnorderedElementsAre(invalidation("k"), invalidation("l"), invalidation("m")));
}

TEST_F(InvalidationDeliveryTest, EveryKindOfReadIsRemembered) {
  run({"SET", "k", "text"});
  for (const std::string read :
       {"GET k", "MGET k", "EXISTS k", "TTL k", "STRLEN k", "GETRANGE k 0 1", "GETBIT k 0",
        "BITCOUNT k", "BITFIELD_RO k GET u8 0", "OBJECT ENCODING k", "DUMP k", "TYPE k"}) {
    EXPECT_THAT(news_after_reading(read, "APPEND k x"), ElementsAre(invalidation("k"))) << read;
  }
}

TEST_F(InvalidationDeliveryTest, AWriteThatReadsIsNotRemembered) {
  for (const std::string write :
       {"BITFIELD k GET u8 0", "SET k x", "GETSET k y", "SET k z GET", "GETEX k EX 10"}) {
    EXPECT_THAT(news_after_reading(write, "SET k 1"), IsEmpty()) << write;
  }
}

TEST_F(InvalidationDeliveryTest, EveryKindOfChangeInvalidates) {
  run({"SET", "source", "1"});
  for (const std::string write :
       {"SET k 1", "EXPIRE k 100", "PERSIST k", "APPEND k 1", "SETBIT k 6 1", "SETRANGE k 0 1",
        "BITFIELD k SET u8 0 5", "GETSET k 1", "INCR k", "COPY source k REPLACE", "RENAME k l",
        "BITOP NOT k source", "GETDEL k", "MSET k 1", "DEL k"}) {
    EXPECT_THAT(news_after_reading("EXISTS k", write), ElementsAre(invalidation("k"))) << write;
  }
}

TEST_F(InvalidationDeliveryTest, FailedWriteDoesNotInvalidate) {
  run({"SET", "k", "text"});
  EXPECT_THAT(news_after_reading("GET k", "INCR k"), IsEmpty());
  EXPECT_THAT(news_after("DEL k"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, FiltersAreTracked) {
  for (const std::string write : {"BF.RESERVE f 0.01 100 DELETABLE", "BF.ADD f a", "BF.MADD f b c",
                                  "BF.DEL f a", "BF.CLEAR f"}) {
    EXPECT_THAT(news_after_reading("BF.EXISTS f zz", write), ElementsAre(invalidation("f")))
        << write;
  }
}

TEST_F(InvalidationDeliveryTest, AnItemThatWasThereChangesNothing) {
  run({"BF.ADD", "f", "a"});
  EXPECT_THAT(news_after_reading("BF.EXISTS f a", "BF.ADD f a"), IsEmpty());
  EXPECT_EQ(reader_.call("PING"), "+PONG");
}

TEST_F(InvalidationDeliveryTest, OwnChangesInvalidateUnlessNoLoop) {
  reader_.call("GET k");
  EXPECT_EQ(reader_.call("SET k 1"), "+OK");
  EXPECT_THAT(reader_.news(), ElementsAre(invalidation("k")));
  track("NOLOOP");
  reader_.call("GET k");
  EXPECT_EQ(reader_.call("SET k 1"), "+OK");
  EXPECT_THAT(reader_.news(), IsEmpty());
  EXPECT_THAT(news_after("SET k 2"), IsEmpty()) << "its own change took the key out";
  EXPECT_THAT(news_after_reading("GET k", "SET k 2"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, DatabasesAreNotDistinguished) {
  reader_.call("GET k");
  run({"SELECT", "1"});
  EXPECT_THAT(news_after("SET k other"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, AFlushTellsOfAllKeys) {
  EXPECT_THAT(news_after_reading("GET k", "FLUSHALL"), ElementsAre(kAllKeys));
  EXPECT_THAT(news_after("SET k 1"), IsEmpty());
  EXPECT_EQ(reader_.call("FLUSHDB"), "+OK");
  EXPECT_THAT(reader_.news(), ElementsAre(kAllKeys)) << "its own, too";
}

TEST_F(InvalidationDeliveryTest, ATransactionTellsAKeyOnce) {
  reader_.call("GET k");
  run({"MULTI"});
  run({"SET", "k", "1"});
  run({"INCR", "k"});
  EXPECT_THAT(news_after("EXEC"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, ReadsOfATransactionAreRemembered) {
  EXPECT_EQ(reader_.pipeline({"MULTI", "GET k", "STRLEN l", "EXEC"}),
            "+OK | +QUEUED | +QUEUED | [nil, :0]");
  EXPECT_THAT(news_after("MSET k 1 l 1"),
              UnorderedElementsAre(invalidation("k"), invalidation("l")));
}

TEST_F(InvalidationDeliveryTest, NewsDoesNotSplitTheReplyOfATransaction) {
  EXPECT_EQ(reader_.pipeline({"MULTI", "GET k", "SET k 1", "GET k", "EXEC"}),
            "+OK | +QUEUED | +QUEUED | +QUEUED | [nil, +OK, 1]");
  EXPECT_THAT(reader_.news(), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, NoInvalidationAfterTrackingOff) {
  reader_.call("GET k");
  reader_.call("CLIENT TRACKING OFF");
  EXPECT_THAT(news_after("SET k 1"), IsEmpty());
}

TEST_F(InvalidationDeliveryTest, Resp2WithoutRedirectGetsNothing) {
  reader_.call("GET k");
  reader_.call("HELLO 2");
  EXPECT_THAT(news_after("SET k 2"), IsEmpty());
  reader_.call("GET k");
  reader_.call("HELLO 3");
  EXPECT_THAT(news_after("SET k 2"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, ResetEndsTracking) {
  reader_.call("GET k");
  EXPECT_EQ(reader_.call("RESET"), "+RESET");
  reader_.call("HELLO 3");
  EXPECT_THAT(news_after("SET k 3"), IsEmpty());
}

TEST_F(InvalidationDeliveryTest, OptInTellsOnlyOfCommandsThatWereMarked) {
  track("OPTIN");
  EXPECT_THAT(news_after_reading("GET k", "SET k 1"), IsEmpty());
  reader_.call("CLIENT CACHING YES");
  reader_.call("GET k");
  reader_.call("GET l");
  EXPECT_THAT(news_after("MSET k 1 l 1"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, AnotherClientCommandDoesNotUseTheMarkUp) {
  track("OPTIN");
  EXPECT_EQ(reader_.pipeline({"CLIENT CACHING YES", "CLIENT ID", "GET k"}),
            "+OK | :" + reader_.id_text() + " | nil");
  EXPECT_THAT(news_after("SET k 1"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, AnyOtherCommandUsesTheMarkUp) {
  track("OPTIN");
  for (const std::string between : {"PING", "NOPE", "GET"}) {
    reader_.pipeline({"CLIENT CACHING YES", between, "GET k"});
    EXPECT_THAT(news_after("SET k 1"), IsEmpty()) << between;
  }
}

TEST_F(InvalidationDeliveryTest, TheMarkIsForAWholeTransaction) {
  track("OPTIN");
  reader_.pipeline({"CLIENT CACHING YES", "MULTI", "GET k", "GET l", "EXEC", "GET m"});
  EXPECT_THAT(news_after("MSET k 1 l 1 m 1"),
              UnorderedElementsAre(invalidation("k"), invalidation("l")));
}

TEST_F(InvalidationDeliveryTest, OptOutLeavesOutCommandsThatWereMarked) {
  track("OPTOUT");
  EXPECT_THAT(news_after_reading("GET k", "SET k 1"), ElementsAre(invalidation("k")));
  reader_.pipeline({"CLIENT CACHING NO", "GET k", "GET l"});
  EXPECT_THAT(news_after("MSET k 1 l 1"), ElementsAre(invalidation("l")));
}

TEST_F(InvalidationDeliveryTest, ExpiryInvalidates) {
  run({"SET", "k", "v", "PX", "30"});
  EXPECT_EQ(reader_.call("GET k"), "v");
  advance_ms(31);
  tick();
  EXPECT_THAT(reader_.news(), ElementsAre(invalidation("k")));
  EXPECT_EQ(reader_.call("GET k"), "nil");
}

TEST_F(InvalidationDeliveryTest, ATimeInThePastIsAChange) {
  run({"SET", "k", "v"});
  EXPECT_THAT(news_after_reading("GET k", "SET k 1 PXAT 1"), ElementsAre(invalidation("k")));
}

TEST_F(InvalidationDeliveryTest, LeadersChangesInvalidate) {
  client_->session->origin = CommandOrigin::kOwnJournal;
  for (const std::string write : {"SET k 1", "BF.ADD k2 x", "DEL k"}) {
    const std::string key = words_in(write)[1];
    EXPECT_THAT(news_after_reading("EXISTS " + key, write), ElementsAre(invalidation(key)));
  }
}

TEST_F(InvalidationDeliveryTest, NewsStandsBetweenRepliesThatAreReadSlowly) {
  const std::string big(1'000'000, 'x');
  run({"SET", "big", big});
  // This number exceeds the number of messages that the server retains for a client.
  constexpr int kRounds = 60;
  std::string request;
  for (int i = 0; i < kRounds; ++i) request += request_of({"GET", "big"});
  reader_.send(request);
  std::string bytes;
  size_t before = 0;
  do {
    before = bytes.size();
    serve();
    run({"SETRANGE", "big", "0", "x"});
    bytes += reader_.received();
  } while (bytes.size() > before);
  int whole = 0;
  int news = 0;
  for (const protocol::Reply& reply : replies_in(bytes)) {
    if (reply.type == protocol::Reply::Type::kPush) {
      ++news;
    } else {
      whole += reply.text == big ? 1 : 0;
    }
  }
  EXPECT_EQ(whole, kRounds);
  EXPECT_GT(news, 1) << "some before the last reply";
}

TEST_F(InvalidationDeliveryTest, KeysEvictedFromTheTableAreInvalidated) {
  ASSERT_EQ(run({"CONFIG", "SET", "tracking-table-max-keys", "100"}), kOk);
  std::set<std::string> invalidated_keys;
  for (int i = 0; i < 1000; ++i) {
    reader_.send(request_of({"GET", "key:" + std::to_string(i)}));
    if (i % 100 != 99) continue;
    for (const std::string& news : reader_.news()) invalidated_keys.insert(news);
  }
  EXPECT_EQ(invalidated_keys.size(), 900U);
  size_t newest = 0;
  for (int i = 900; i < 1000; ++i)
    newest += invalidated_keys.count(invalidation("key:" + std::to_string(i)));
  EXPECT_LT(newest, 60U) << "the newest keys leave first";
  EXPECT_EQ(info("stats", "tracking_total_keys"), "100");
  ASSERT_EQ(run({"CONFIG", "SET", "tracking-table-max-keys", "10"}), kOk);
  tick();
  EXPECT_EQ(info("stats", "tracking_total_keys"), "10");
}

TEST_F(InvalidationDeliveryTest, ClientsThatVanishLeaveNothing) {
  for (int i = 0; i < 50; ++i) {
    Remote& visitor = connect({"HELLO 3", "CLIENT TRACKING ON"});
    visitor.send(request_of({"GET", "k"}) + request_of({"GET", "k" + std::to_string(i)}));
    if (i % 2 == 1) visitor.replies();
    visitor.hang_up();
    run({"SET", "k", std::to_string(i)});
  }
  reader_.hang_up();
  EXPECT_EQ(info("clients", "tracking_clients"), "0");
  EXPECT_EQ(info("stats", "tracking_total_keys"), "0");
  EXPECT_EQ(info("stats", "tracking_total_items"), "0");
}

class BroadcastDeliveryTest : public InvalidationDeliveryTest {
 protected:
  BroadcastDeliveryTest() { track("BCAST PREFIX a PREFIX b"); }

  Remote& all_ = connect({"HELLO 3", "CLIENT TRACKING ON BCAST NOLOOP"});
};

TEST_F(BroadcastDeliveryTest, EachPrefixGetsItsKeysOnceInOrder) {
  EXPECT_THAT(news_after("MSET b1 1 a2 1 a1 1 c 1 a2 3"),
              ElementsAre(invalidation("a1, a2"), invalidation("b1")));
  EXPECT_THAT(all_.news(), ElementsAre(invalidation("a1, a2, b1, c")));
  EXPECT_THAT(news_after("GET a1"), IsEmpty());
}

TEST_F(BroadcastDeliveryTest, OwnChangesInvalidateUnlessNoLoop) {
  reader_.call("SET a 1");
  EXPECT_THAT(reader_.news(), ElementsAre(invalidation("a")));
  EXPECT_THAT(all_.news(), ElementsAre(invalidation("a")));
  all_.call("SET a 1");
  EXPECT_THAT(reader_.news(), ElementsAre(invalidation("a")));
  all_.call("MSET a 1 b 1 c 1");
  EXPECT_THAT(reader_.news(), ElementsAre(invalidation("a"), invalidation("b")));
  EXPECT_THAT(all_.news(), IsEmpty());
}

TEST_F(BroadcastDeliveryTest, ATransactionIsOneMessage) {
  for (const char* line : {"MULTI", "SET a9 1", "SET a8 1", "SET a9 2", "DEL a9"}) {
    run(words_in(line));
  }
  EXPECT_THAT(news_after("EXEC"), ElementsAre(invalidation("a8, a9")));
  EXPECT_THAT(all_.news(), ElementsAre(invalidation("a8, a9")));
}

TEST_F(BroadcastDeliveryTest, AKeyThatIsNotThereIsNoChange) {
  run({"SET", "a1", "1"});
  reader_.news();
  EXPECT_THAT(news_after("DEL nothing a1"), ElementsAre(invalidation("a1")));
  EXPECT_THAT(news_after("DEL a2"), IsEmpty());
}

TEST_F(BroadcastDeliveryTest, DatabasesAreNotDistinguished) {
  run({"SELECT", "3"});
  EXPECT_THAT(news_after("SET a1 1"), ElementsAre(invalidation("a1")));
}

TEST_F(BroadcastDeliveryTest, FlushInvalidatesOnce) {
  EXPECT_THAT(news_after("FLUSHALL"), ElementsAre(kAllKeys));
  EXPECT_THAT(all_.news(), ElementsAre(kAllKeys));
}

TEST_F(BroadcastDeliveryTest, PrefixesAreAddedByAnotherRequest) {
  EXPECT_EQ(reader_.call("CLIENT TRACKING ON BCAST PREFIX c"), "+OK");
  EXPECT_THAT(news_after("SET c 1"), ElementsAre(invalidation("c")));
  EXPECT_EQ(reader_.call("CLIENT TRACKING ON BCAST"), "+OK");
  EXPECT_THAT(news_after("SET c 2"), ElementsAre(invalidation("c"), invalidation("c")))
      << "one for each prefix";
  EXPECT_THAT(news_after("SET zzz 2"), ElementsAre(invalidation("zzz")));
}

TEST_F(BroadcastDeliveryTest, PrefixesEndWithTracking) {
  reader_.call("CLIENT TRACKING OFF");
  EXPECT_THAT(news_after("SET a 2"), IsEmpty());
  reader_.call("CLIENT TRACKING ON BCAST PREFIX z");
  EXPECT_THAT(news_after("SET a 2"), IsEmpty());
  EXPECT_THAT(news_after("SET z 2"), ElementsAre(invalidation("z")));
}

TEST_F(BroadcastDeliveryTest, Resp2WithoutRedirectGetsNothing) {
  reader_.call("HELLO 2");
  EXPECT_THAT(news_after("SET a 3"), IsEmpty());
  EXPECT_THAT(all_.news(), ElementsAre(invalidation("a")));
}

class RedirectDeliveryTest : public ClientsFixture {
 protected:
  std::string redirect(Remote& from, const Remote& target, const std::string& options = "") {
    from.call("CLIENT TRACKING OFF");
    return from.call("CLIENT TRACKING ON REDIRECT " + target.id_text() + options);
  }
  static std::string message(const std::string& keys) {
    return "[message, __redis__:invalidate, " + keys + "]";
  }

  Remote& reader_ = connect();
  Remote& listener_ = connect({"SUBSCRIBE __redis__:invalidate"});
  Remote& pushed_ = connect({"HELLO 3"});
};

TEST_F(RedirectDeliveryTest, ASubscriberThatSpeaksResp2GetsAMessage) {
  EXPECT_EQ(redirect(reader_, listener_), "+OK");
  reader_.call("GET k");
  run({"SET", "k", "1"});
  EXPECT_THAT(listener_.news(), ElementsAre(message("[k]")));
  EXPECT_THAT(reader_.news(), IsEmpty());
}

TEST_F(RedirectDeliveryTest, AFlushIsAMessageOfNoKeys) {
  redirect(reader_, listener_);
  reader_.call("GET k");
  run({"FLUSHALL"});
  EXPECT_THAT(listener_.news(), ElementsAre(message("nil")));
}

TEST_F(RedirectDeliveryTest, ABroadcastIsOneMessage) {
  redirect(reader_, listener_, " BCAST");
  run({"MSET", "k", "1", "l", "2"});
  EXPECT_THAT(listener_.news(), ElementsAre(message("[k, l]")));
}

TEST_F(RedirectDeliveryTest, AClientThatSpeaksResp3GetsAPush) {
  redirect(reader_, pushed_);
  reader_.call("GET k");
  run({"SET", "k", "1"});
  EXPECT_THAT(pushed_.news(), ElementsAre(invalidation("k")));
}

TEST_F(RedirectDeliveryTest, WithoutASubscriptionResp2GetsNothing) {
  EXPECT_EQ(redirect(pushed_, reader_), "+OK");
  pushed_.call("GET k");
  run({"SET", "k", "2"});
  EXPECT_THAT(reader_.news(), IsEmpty());
  EXPECT_THAT(pushed_.news(), IsEmpty());
}

TEST_F(RedirectDeliveryTest, AClientMayRedirectToItself) {
  EXPECT_EQ(redirect(pushed_, pushed_, " NOLOOP"), "+OK");
  pushed_.call("GET k");
  run({"SET", "k", "2"});
  EXPECT_THAT(pushed_.news(), ElementsAre(invalidation("k")));
  pushed_.call("GET k");
  pushed_.call("SET k 2");
  EXPECT_THAT(pushed_.news(), IsEmpty());
}

class BrokenRedirectTest : public RedirectDeliveryTest {
 protected:
  BrokenRedirectTest() {
    for (Remote* const client : {&tracker_, &reader_}) {
      redirect(*client, pushed_);
      client->call("GET k");
    }
    pushed_.hang_up();
    run({"SET", "k", "1"});
  }

  Remote& tracker_ = connect({"HELLO 3"});
  const std::string broken_ = ">[tracking-redir-broken, :" + pushed_.id_text() + "]";
};

TEST_F(BrokenRedirectTest, IsReportedWithResp3Only) {
  EXPECT_THAT(tracker_.news(), ElementsAre(broken_));
  EXPECT_THAT(reader_.news(), IsEmpty());
}

TEST_F(BrokenRedirectTest, IsShown) {
  const std::string redirect = "redirect: :" + pushed_.id_text();
  EXPECT_EQ(tracker_.call("CLIENT TRACKINGINFO"),
            "{flags: <on, broken_redirect>, " + redirect + ", prefixes: []}");
  EXPECT_EQ(reader_.call("CLIENT TRACKINGINFO"),
            "[flags, [on, broken_redirect], redirect, :" + pushed_.id_text() + ", prefixes, []]");
  for (Remote* const client : {&tracker_, &reader_}) {
    EXPECT_THAT(client->call("CLIENT INFO"), testing::HasSubstr(" flags=tR "));
  }
}

TEST_F(BrokenRedirectTest, IsReportedAgainWithTheNextKey) {
  tracker_.news();
  tracker_.call("GET k");
  run({"SET", "k", "1"});
  EXPECT_THAT(tracker_.news(), ElementsAre(broken_));
}

TEST_F(BrokenRedirectTest, EndsWithAnotherRequest) {
  EXPECT_EQ(tracker_.call("CLIENT TRACKING ON"), "+OK");
  EXPECT_EQ(tracker_.call("CLIENT TRACKINGINFO"), "{flags: <on>, redirect: :0, prefixes: []}");
}

}  // namespace
}  // namespace server::net
