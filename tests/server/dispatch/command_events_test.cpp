// SPDX-License-Identifier: MIT
//
// Tests the notifications that each command publishes on keyspace and keyevent channels. The
// expected notifications were measured on Redis 7.0.15; tests/system/data/notification_test.py
// compares random streams of commands.
#include <initializer_list>
#include <string>
#include <utility>

#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/config/special_values.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"
#include "tests/support/clients_fixture.h"

namespace server::net {
namespace {

class CommandEventsTest : public ClientsFixture {
 protected:
  // A command and the events that it publishes. Each event is "event key", followed by "@database"
  // if the database is not 0.
  using Step = std::pair<std::string, std::string>;

  CommandEventsTest() {
    pubsub_.subscribe(SubscriptionKind::kPattern, "__key*", {1000, 0});
    choose("KEAmn");
  }

  void choose(const std::string& classes) {
    ASSERT_EQ(run({"CONFIG", "SET", "notify-keyspace-events", classes}), kOk);
  }
  // A published message. `form` ("space" or "event"), `database` and `name` come from the channel:
  // `name` is a key in the form "space", and an event in the form "event".
  struct Message {
    std::string form;
    std::string database;
    std::string name;
    std::string payload;
  };
  std::vector<Message> messages() {
    std::vector<Message> all;
    while (const auto delivery = pubsub_.take(0)) {
      const std::string& head = delivery->message->head;
      const std::string& payload = *delivery->message->payload;
      const size_t at = head.find('@', head.rfind("__key"));
      const size_t name = head.find("__:", at) + 3;
      all.push_back({head.substr(head.rfind("__key") + 5, 5),
                     head.substr(at + 1, name - 3 - at - 1),
                     head.substr(name, head.find("\r\n", name) - name),
                     payload.substr(0, payload.size() - 2)});
    }
    return all;
  }
  // Returns the published events. Expects each event first on its keyspace channel and then on its
  // keyevent channel.
  std::string events_text() {
    const auto all = messages();
    std::string text;
    EXPECT_EQ(all.size() % 2, 0U);
    for (size_t i = 0; i + 1 < all.size(); i += 2) {
      EXPECT_EQ(all[i].form, "space");
      EXPECT_EQ(all[i + 1].form, "event");
      EXPECT_EQ(all[i].database, all[i + 1].database);
      EXPECT_EQ(all[i].name, all[i + 1].payload);
      EXPECT_EQ(all[i].payload, all[i + 1].name);
      const std::string& database = all[i].database;
      text += (i > 0 ? ", " : "") + all[i].payload + " " + all[i].name +
              (database == "0" ? "" : "@" + database);
    }
    return text;
  }
  void expect(std::initializer_list<Step> steps) {
    for (const auto& [line, events] : steps) {
      run(words_in(line));
      EXPECT_EQ(events_text(), events) << line;
    }
  }
  void prepare(std::initializer_list<std::string> lines) {
    for (const std::string& line : lines) run(words_in(line));
    messages();
  }
  // A key that has expired but was not deleted yet.
  void expire_k() {
    prepare({"SET k 1 PX 1"});
    advance_ms(10);
  }
};

TEST_F(CommandEventsTest, OfSet) {
  expect({{"SET a 1", "new a, set a"},
          {"SET a 1 EX 100", "set a, expire a"},
          {"SET a 2 KEEPTTL", "set a"},
          {"SET a 3 NX", ""},
          {"SET b 3 XX", ""},
          {"SET b 3 NX PX 100000", "new b, set b, expire b"},
          {"SET c 1 GET", "keymiss c, new c, set c"},
          {"SET c 2 GET", "set c"},
          {"SETNX d 1", "new d, set d"},
          {"SETNX d 2", ""},
          {"SETEX e 100 1", "new e, set e, expire e"},
          {"PSETEX e 100000 1", "set e, expire e"}});
}

TEST_F(CommandEventsTest, OfReadsThatWrite) {
  prepare({"SET e 1"});
  expect({{"GETSET e 2", "set e"},
          {"GETSET f 1", "keymiss f, new f, set f"},
          {"GETDEL f", "del f"},
          {"GETDEL f", "keymiss f"},
          {"GETEX e EX 100", "expire e"},
          {"GETEX e PERSIST", "persist e"},
          {"GETEX e PERSIST", ""},
          {"GETEX e", ""},
          {"GETEX e EXAT 1", "del e"},
          {"GETEX none", "keymiss none"}});
}

TEST_F(CommandEventsTest, OfManyStringsAtOnce) {
  prepare({"SET a 1", "SET b 1"});
  expect({{"MSET a 1 b 2 a 3", "set a, set b, set a"},
          {"MSETNX a 1 z 2", ""},
          {"MSETNX y 1 z 2", "new y, set y, new z, set z"},
          {"MGET a none none2", "keymiss none, keymiss none2"}});
}

TEST_F(CommandEventsTest, OfChangesOfAString) {
  prepare({"SET y 1"});
  expect({{"APPEND y x", "append y"},
          {"APPEND x y", "new x, append x"},
          {"APPEND x", ""},
          {"SETRANGE x 3 abc", "setrange x"},
          {"SETRANGE w 3 abc", "new w, setrange w"},
          {"SETRANGE v 3 ", ""},
          {"LCS y none", "keymiss none"},
          {"LCS none none2", "keymiss none, keymiss none2"}});
  EXPECT_EQ(run({"SETRANGE", "v", "3", ""}), integer(0));
  EXPECT_EQ(events_text(), "");
}

TEST_F(CommandEventsTest, OfNumbers) {
  expect({{"INCR i", "new i, incrby i"},
          {"INCRBY i 3", "incrby i"},
          {"DECR i", "incrby i"},
          {"DECRBY i 2", "incrby i"},
          {"INCRBYFLOAT i 1.5", "incrbyfloat i"},
          {"INCRBYFLOAT j 1.5", "new j, incrbyfloat j"},
          {"INCR i", ""},
          {"INCR i x", ""}});
}

TEST_F(CommandEventsTest, OfBits) {
  expect({{"SETBIT bits 7 1", "new bits, setbit bits"},
          {"SETBIT bits 7 1", ""},
          {"SETBIT bits 900 0", "setbit bits"},
          {"SETBIT bits 900 0", ""},
          {"SETBIT bits -1 1", ""},
          {"GETBIT none 1", "keymiss none"},
          {"BITCOUNT none", "keymiss none"},
          {"BITPOS none 1", "keymiss none"}});
}

TEST_F(CommandEventsTest, OfBitFields) {
  prepare({"SETBIT bits 7 1"});
  expect({{"BITFIELD bits SET u8 0 5 INCRBY u8 8 2", "setbit bits"},
          {"BITFIELD bits SET u8 0 5", ""},
          {"BITFIELD fresh GET u8 0", "keymiss fresh"},
          {"BITFIELD fresh INCRBY u2 0 3 OVERFLOW FAIL INCRBY u2 0 3", "new fresh, setbit fresh"},
          {"BITFIELD over OVERFLOW FAIL SET u2 0 9", "new over"},
          {"BITFIELD_RO none GET u8 0", "keymiss none"}});
}

TEST_F(CommandEventsTest, OfBitOperations) {
  prepare({"SET bits abc", "SET a 1", "SET b 2"});
  expect({{"BITOP AND dest bits none", "keymiss none, new dest, set dest"},
          {"BITOP OR dest bits a", "set dest"},
          {"BITOP NOT dest none", "keymiss none, del dest"},
          {"BITOP NOT dest none", "keymiss none"},
          {"BITOP XOR dest2 a b", "new dest2, set dest2"},
          {"BITOP DIFF dest2", ""}});
}

TEST_F(CommandEventsTest, OfDeletions) {
  prepare({"MSET a 1 b 1 c 1 d 1"});
  expect({{"DEL a nothing b a", "del a, del b"}, {"UNLINK c d", "del c, del d"}});
}

TEST_F(CommandEventsTest, OfExpiries) {
  prepare({"MSET i 1 j 1 y 1"});
  expect({{"EXPIRE i 100", "expire i"},
          {"PEXPIRE i 100000 NX", ""},
          {"PEXPIRE i 100000 XX", "expire i"},
          {"EXPIREAT i 99999999999", "expire i"},
          {"EXPIRE i -1", "del i"},
          {"EXPIRE i 10", ""},
          {"PEXPIREAT j 1", "del j"},
          {"PERSIST y", ""},
          {"EXPIRE y 100", "expire y"},
          {"PERSIST y", "persist y"}});
}

TEST_F(CommandEventsTest, OfRenaming) {
  prepare({"MSET y 1 x 1", "SET s 1 EX 100"});
  expect({{"RENAME y r", "new r, rename_from y, rename_to r"},
          {"RENAME r r", ""},
          {"RENAME none r", ""},
          {"RENAME s r", "new r, rename_from s, rename_to r"},
          {"RENAMENX r x", ""},
          {"RENAMENX r q", "new q, rename_from r, rename_to q"}});
}

TEST_F(CommandEventsTest, OfCopies) {
  prepare({"SET q 1"});
  expect({{"COPY q p", "new p, copy_to p"},
          {"COPY q p", ""},
          {"COPY q p REPLACE", "new p, copy_to p"},
          {"COPY q p DB 1", "new p@1, copy_to p@1"}});
}

TEST_F(CommandEventsTest, OfOtherDatabases) {
  prepare({"SET q 1"});
  expect({{"MOVE q 1", "new q@1, move_from q, move_to q@1"},
          {"MOVE q 1", ""},
          {"SELECT 1", ""},
          {"SET q 5", "set q@1"},
          {"MOVE q 0", "new q, move_from q@1, move_to q"},
          {"EXISTS none q", "keymiss none@1, keymiss q@1"}});
}

TEST_F(CommandEventsTest, OfKeysThatAreMissed) {
  prepare({"SET q 1"});
  expect({{"GET none", "keymiss none"},
          {"STRLEN none", "keymiss none"},
          {"GETRANGE none 0 1", "keymiss none"},
          {"TYPE none", "keymiss none"},
          {"TTL none", "keymiss none"},
          {"TOUCH none q", "keymiss none"},
          {"DUMP none", "keymiss none"}});
}

TEST_F(CommandEventsTest, SomeCommandsMissInSilence) {
  expect({{"PERSIST none", ""},
          {"EXPIRE none 1", ""},
          {"OBJECT ENCODING none", ""},
          {"OBJECT FREQ none", ""},
          {"MEMORY USAGE none", ""},
          {"RANDOMKEY", ""},
          {"KEYS *", ""},
          {"SCAN 0", ""}});
}

TEST_F(CommandEventsTest, OfATransactionComeWithExec) {
  expect({{"MULTI", ""},
          {"SET m 1", ""},
          {"GET none", ""},
          {"INCR m", ""},
          {"DEL m", ""},
          {"EXEC", "new m, set m, keymiss none, incrby m, del m"}});
}

TEST_F(CommandEventsTest, ATransactionThatDoesNotRunTellsNothing) {
  expect({{"MULTI", ""}, {"SET m 1", ""}, {"DISCARD", ""}});
  expect({{"SET t a", "new t, set t"},
          {"INCR t", ""},
          {"WATCH t", ""},
          {"SET t 1", "set t"},
          {"MULTI", ""},
          {"SET u 1", ""},
          {"EXEC", ""}});
}

TEST_F(CommandEventsTest, WholeDatabasesComeAndGoInSilence) {
  prepare({"SET a 1"});
  expect({{"SWAPDB 0 1", ""}, {"FLUSHDB", ""}, {"SET a 1", "new a, set a"}, {"FLUSHALL", ""}});
}

TEST_F(CommandEventsTest, OfRestoredDumps) {
  prepare({"SET from text"});
  const std::string dumped = run({"DUMP", "from"});
  const size_t start = dumped.find('\n') + 1;
  const std::string payload = dumped.substr(start, dumped.size() - start - 2);
  const auto restore = [&](const std::string& key, const std::string& ttl,
                           const std::vector<std::string>& options) {
    std::vector<std::string> words{"RESTORE", key, ttl, payload};
    words.insert(words.end(), options.begin(), options.end());
    run(words);
    return events_text();
  };
  EXPECT_EQ(restore("a", "0", {}), "new a, restore a");
  EXPECT_EQ(restore("a", "0", {}), "") << "it is there";
  EXPECT_EQ(restore("a", "0", {"REPLACE"}), "new a, restore a");
  EXPECT_EQ(restore("b", "100000", {}), "new b, restore b");
  EXPECT_EQ(restore("b", "1", {"REPLACE", "ABSTTL"}), "del b") << "its time is over";
  EXPECT_EQ(restore("b", "1", {"ABSTTL"}), "");
  EXPECT_EQ(restore("a", "99999999999999", {"REPLACE", "ABSTTL"}), "new a, restore a");
  run({"RESTORE", "c", "0", "damaged"});
  EXPECT_EQ(events_text(), "");
}

TEST_F(CommandEventsTest, TheTickTellsOfExpiredKeys) {
  expire_k();
  expiry_.tick();
  EXPECT_EQ(events_text(), "expired k");
}

TEST_F(CommandEventsTest, AnAccessBehindTheExpiryTellsAtOnce) {
  choose("KEg$xm");
  for (const Step& step :
       std::initializer_list<Step>{{"GET k", "expired k, keymiss k"},
                                   {"SET k 1", "expired k, set k"},
                                   {"EXISTS k k", "expired k, keymiss k, keymiss k"},
                                   {"DEL k", "expired k"},
                                   {"TTL k", "expired k, keymiss k"},
                                   {"MGET x k", "keymiss x, expired k, keymiss k"},
                                   {"INCR k", "expired k, incrby k"},
                                   {"BITOP NOT l k", "expired k, keymiss k"}}) {
    expire_k();
    expect({step});
  }
}

TEST_F(CommandEventsTest, ExpiryInATransactionPublishesOnce) {
  expire_k();
  expect(
      {{"MULTI", ""}, {"GET k", ""}, {"GET k", ""}, {"EXEC", "expired k, keymiss k, keymiss k"}});
}

TEST_F(CommandEventsTest, OnlyTheChosenFormIsPublished) {
  choose("EA");
  run({"SET", "k", "v"});
  for (const Message& message : messages()) EXPECT_EQ(message.form, "event");
  choose("KA");
  run({"SET", "k", "v"});
  const auto all = messages();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].form, "space");
}

TEST_F(CommandEventsTest, ClassesAreShownAsTheyAreKept) {
  for (const auto& [given, shown] : std::initializer_list<Step>{{"KEA", "AKE"},
                                                                {"", ""},
                                                                {"nKg", "gnK"},
                                                                {"g$lshzxetd", "A"},
                                                                {"KEm", "KEm"},
                                                                {"A", "A"},
                                                                {"KEAn", "AnKE"},
                                                                {"gg$K", "g$K"}}) {
    choose(given);
    EXPECT_EQ(run({"CONFIG", "GET", "notify-keyspace-events"}),
              array({bulk("notify-keyspace-events"), bulk(shown)}));
  }
}

TEST_F(CommandEventsTest, UnknownClassesAreRefused) {
  for (const char* const classes : {"q", "KEAq", "a"}) {
    EXPECT_EQ(run({"CONFIG", "SET", "notify-keyspace-events", classes}),
              error(config_set_error("notify-keyspace-events", kInvalidEventClass)));
  }
}

TEST_F(CommandEventsTest, AReplicaTellsItsLeadersChangesOfFilters) {
  choose("KEA");
  journal_.set_active(true);
  for (const char* const line :
       {"BF.RESERVE r 0.01 100", "BF.ADD r a", "BF.ADD r a", "BF.MADD r b c", "BF.ADD fresh a",
        "BF.INSERT i ITEMS a b", "BF.MERGE m r i", "BF.CLEAR m", "BF.RESERVE d 0.01 9 DELETABLE",
        "BF.ADD d a", "BF.DEL d a"}) {
    run(words_in(line));
  }
  const std::string on_leader = events_text();
  std::string stream;
  journal_.take(stream);
  journal_.set_active(false);
  run({"FLUSHALL"});
  messages();
  other_->session->origin = CommandOrigin::kOwnJournal;
  for (const protocol::Reply& command : replies_in(stream)) {
    std::vector<std::string> words;
    for (const protocol::Reply& word : command.elements) words.push_back(word.text);
    run_as_other(words);
  }
  const auto sorted = [](const std::string& events) {
    std::vector<std::string> all;
    for (size_t start = 0; start < events.size();) {
      const size_t end = std::min(events.find(", ", start), events.size());
      all.push_back(events.substr(start, end - start));
      start = end + 2;
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(sorted(events_text()), sorted(on_leader));
  EXPECT_NE(on_leader.find("bloom.add r"), std::string::npos);
}

}  // namespace
}  // namespace server::net
