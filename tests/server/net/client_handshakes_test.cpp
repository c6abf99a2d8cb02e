// SPDX-License-Identifier: MIT
//
// Tests the first commands of client libraries and tools that no test can run. The bytes are
// exactly those that the clients send. Each script is one pipeline: every command must get exactly
// one reply, errors included.
#include <gmock/gmock.h>

#include <sstream>

#include "protocol/error_texts.h"
#include "server/commands/replication/cluster_commands.h"
#include "tests/support/connection_fixture.h"

namespace server::net {
namespace {

using protocol::Reply;
using testing::_;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::StartsWith;
using testing::Truly;
using Expected = testing::Matcher<const Reply&>;

// Commands that every client, tool or GUI may send at any time. The server must know these commands
// and subcommands.
constexpr const char* kEveryday = R"(
APPEND AUTH BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS COPY DBSIZE DECR DECRBY DEL DISCARD DUMP
ECHO EXEC EXISTS EXPIRE EXPIREAT EXPIRETIME FLUSHALL FLUSHDB GET GETBIT GETDEL GETEX GETRANGE
GETSET HELLO INCR INCRBY INCRBYFLOAT INFO KEYS LASTSAVE LCS MGET MONITOR MOVE MSET MSETNX MULTI
PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PING PSETEX PSUBSCRIBE PSYNC PTTL PUBLISH PUNSUBSCRIBE QUIT
RANDOMKEY READONLY READWRITE RENAME RENAMENX REPLCONF REPLICAOF RESET RESTORE ROLE SAVE BGSAVE
BGREWRITEAOF SCAN SELECT SET SETBIT SETEX SETNX SETRANGE SHUTDOWN SLAVEOF SSUBSCRIBE STRLEN
SUBSCRIBE SUBSTR SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TTL TYPE UNLINK UNSUBSCRIBE UNWATCH WAIT
WATCH ASKING FAILOVER BF.RESERVE BF.ADD BF.MADD BF.INSERT BF.EXISTS BF.MEXISTS BF.INFO BF.CARD
BF.SCANDUMP BF.LOADCHUNK CLIENT|ID CLIENT|INFO CLIENT|LIST CLIENT|KILL CLIENT|SETNAME
CLIENT|GETNAME CLIENT|SETINFO CLIENT|REPLY CLIENT|PAUSE CLIENT|UNPAUSE CLIENT|UNBLOCK
CLIENT|NO-EVICT CLIENT|NO-TOUCH CONFIG|GET CONFIG|SET CONFIG|RESETSTAT CONFIG|REWRITE
COMMAND|COUNT COMMAND|DOCS COMMAND|INFO COMMAND|LIST COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS
MODULE|LIST OBJECT|ENCODING OBJECT|FREQ OBJECT|IDLETIME OBJECT|REFCOUNT MEMORY|USAGE MEMORY|STATS
MEMORY|DOCTOR MEMORY|PURGE PUBSUB|CHANNELS PUBSUB|NUMSUB PUBSUB|NUMPAT SLOWLOG|GET SLOWLOG|LEN
SLOWLOG|RESET CLUSTER|INFO CLUSTER|SLOTS CLUSTER|SHARDS CLUSTER|NODES CLUSTER|MYID CLUSTER|KEYSLOT
LATENCY|DOCTOR LATENCY|GRAPH LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST LATENCY|RESET
ACL|CAT ACL|DELUSER ACL|DRYRUN ACL|GENPASS ACL|GETUSER ACL|LIST ACL|LOG ACL|SETUSER ACL|USERS
ACL|WHOAMI CLIENT|TRACKING CLIENT|CACHING CLIENT|TRACKINGINFO CLIENT|GETREDIR)";

struct Line {
  std::vector<std::string> words;
  Expected expected;
};
using Script = std::vector<Line>;

Expected text(const std::string& text) {
  return AllOf(Field(&Reply::text, text), Truly([](const Reply& reply) {
                 return !reply.is_error() && reply.elements.empty();
               }));
}
Expected error_like(const testing::Matcher<const std::string&>& text) {
  return AllOf(Field(&Reply::type, Reply::Type::kError), Field(&Reply::text, text));
}
Expected any() {
  return Truly([](const Reply& reply) { return !reply.is_error(); });
}
Expected null() {
  return Field(&Reply::type, Reply::Type::kNull);
}
Expected number(int64_t value) {
  return AllOf(Field(&Reply::type, Reply::Type::kInteger), Field(&Reply::integer, value));
}
Expected holds(Reply::Type type, const std::string& name, const std::string& value) {
  return AllOf(Field(&Reply::type, type),
               Field(&Reply::elements, ElementsAre(text(name), text(value))));
}
Expected ok() {
  return text("OK");
}
Expected no_cluster() {
  return error_like(std::string(kClusterDisabled));
}
// The reply to CLIENT MAINT_NOTIFICATIONS must be an error. Four client libraries take any other
// reply as a promise to send push messages.
Expected no_maintenance() {
  return error_like(StartsWith("ERR unknown subcommand"));
}

const Reply& value_of(const Reply& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    if (map.elements[i].text == name) return map.elements[i + 1];
  }
  static const Reply kNone;
  return kNone;
}

class ClientHandshakesTest : public ConnectionFixture {
 protected:
  std::vector<Reply> shake(const Script& script) {
    std::string request;
    for (const Line& line : script) request += request_of(line.words);
    auto replies = replies_in(answer(request));
    EXPECT_EQ(replies.size(), script.size());
    replies.resize(script.size());
    for (size_t i = 0; i < script.size(); ++i) {
      EXPECT_THAT(replies[i], script[i].expected) << testing::PrintToString(script[i].words);
    }
    EXPECT_EQ(answer(request_of({"ECHO", "end"})), bulk("end")) << "replies out of step";
    return replies;
  }
  void set_password() {
    EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
    remote_.session().authenticated = false;
  }

  const Line lib_name_{{"CLIENT", "SETINFO", "LIB-NAME", "some-client(v1.0)"}, ok()};
  const Line lib_version_{{"CLIENT", "SETINFO", "LIB-VER", "1.2.3"}, ok()};
};

TEST_F(ClientHandshakesTest, EverydayCommandsAreKnown) {
  std::istringstream words(kEveryday);
  std::vector<std::string> command{"COMMAND", "INFO"};
  for (std::string word; words >> word;) command.push_back(word);
  const auto replies = replies_in(answer(request_of(command)));
  ASSERT_EQ(replies.size(), 1U);
  ASSERT_EQ(replies[0].elements.size(), command.size() - 2);
  for (size_t i = 2; i < command.size(); ++i) {
    EXPECT_THAT(replies[0].elements[i - 2], testing::Not(null())) << command[i];
  }
}

TEST_F(ClientHandshakesTest, RedisPy8) {
  const auto replies = shake({
      {{"HELLO", "3"}, any()},
      {{"CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "internal-ip"},
       no_maintenance()},
      lib_name_,
      lib_version_,
      {{"SELECT", "2"}, ok()},
  });
  const Reply& hello = replies[0];
  EXPECT_THAT(value_of(hello, "proto"), number(3));
  EXPECT_THAT(value_of(hello, "server"), text("redis"));
  EXPECT_THAT(value_of(hello, "mode"), text("standalone"));
  // redis-py 8 caches keys only if HELLO reports a server version of at least 7.4.0.
  std::istringstream version(value_of(hello, "version").text);
  std::array<int, 3> parts{};
  char dot = 0;
  version >> parts[0] >> dot >> parts[1] >> dot >> parts[2];
  EXPECT_GE(parts, (std::array<int, 3>{7, 4, 0}));
}

TEST_F(ClientHandshakesTest, NodeRedis6) {
  shake({
      {{"HELLO", "3"}, any()},
      lib_name_,
      lib_version_,
      {{"CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "none"}, no_maintenance()},
  });
}

TEST_F(ClientHandshakesTest, IoRedis) {
  const auto replies = shake({
      {{"client", "SETINFO", "LIB-NAME", "ioredis"}, ok()},
      {{"client", "SETINFO", "LIB-VER", "5.8.0"}, ok()},
      {{"info"}, any()},
      {{"cluster", "INFO"}, no_cluster()},
  });
  EXPECT_THAT(replies[2].text, HasSubstr("\r\nloading:0\r\n"));
}

TEST_F(ClientHandshakesTest, ValkeyGlide) {
  const auto replies =
      shake({{{"HELLO", "3"}, any()}, lib_name_, lib_version_, {{"INFO", "REPLICATION"}, any()}});
  EXPECT_THAT(replies[3].text, HasSubstr("role:master\r\n"));
}

// go-redis logs in with HELLO, then sends a pipeline in which MAINT_NOTIFICATIONS may fail.
TEST_F(ClientHandshakesTest, GoRedis) {
  set_password();
  shake({
      {{"hello", "3", "auth", "default", "secret", "setname", "app"}, any()},
      {{"client", "maint_notifications", "on", "moving-endpoint-type", "none"}, no_maintenance()},
      {{"client", "setinfo", "lib-name", "go-redis(,go1.24)"}, ok()},
      {{"client", "setinfo", "lib-ver", "9.14.0"}, ok()},
      {{"client", "getname"}, text("app")},
      {{"bf.reserve", "f", "0.01", "100"}, ok()},
      {{"bf.info", "f"}, any()},
  });
}

TEST_F(ClientHandshakesTest, GoRedisKnowsEveryFieldOfBfInfo) {
  const auto replies =
      shake({{{"BF.RESERVE", "f", "0.01", "100"}, ok()}, {{"BF.INFO", "f"}, any()}});
  std::vector<std::string> names;
  for (size_t i = 0; i < replies[1].elements.size(); i += 2) {
    names.push_back(replies[1].elements[i].text);
  }
  EXPECT_THAT(names, ElementsAre("Capacity", "Size", "Number of filters",
                                 "Number of items inserted", "Expansion rate"));
}

// The server must answer an unknown protocol version with NOPROTO, because Jedis and Lettuce search
// for this word.
TEST_F(ClientHandshakesTest, JedisAndLettuceFallBackFromResp3) {
  shake({
      {{"HELLO", "4"}, error_like(StartsWith("NOPROTO "))},
      {{"CLIENT", "SETINFO", "lib-name", "jedis"}, ok()},
      {{"CLIENT", "SETINFO", "lib-ver", "7.0.0"}, ok()},
      {{"SELECT", "1"}, ok()},
      {{"PING"}, text("PONG")},
      {{"CLUSTER", "SLOTS"}, no_cluster()},
  });
}

TEST_F(ClientHandshakesTest, JedisLogsInAfterNoauth) {
  set_password();
  shake({
      {{"HELLO", "3"}, error_like(StartsWith("NOAUTH "))},
      {{"AUTH", "secret"}, ok()},
      {{"HELLO", "3"}, any()},
  });
}

// StackExchange.Redis sends one pipeline, in which AUTH fails.
TEST_F(ClientHandshakesTest, StackExchange) {
  const std::string echo("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16);
  const auto replies = shake({
      {{"AUTH", "user", "nonsense"}, error_like(StartsWith("WRONGPASS "))},
      {{"HELLO", "3"}, any()},
      {{"CLIENT", "SETNAME", "host(SE.Redis-v3)"}, ok()},
      lib_name_,
      lib_version_,
      {{"CLIENT", "ID"}, any()},
      {{"CONFIG", "GET", "timeout"}, holds(Reply::Type::kMap, "timeout", "0")},
      {{"CONFIG", "GET", "replica-read-only"},
       holds(Reply::Type::kMap, "replica-read-only", "yes")},
      {{"CONFIG", "GET", "slave-read-only"}, holds(Reply::Type::kMap, "slave-read-only", "yes")},
      {{"CONFIG", "GET", "databases"}, holds(Reply::Type::kMap, "databases", "16")},
      {{"SENTINEL", "MASTERS"}, error_like(StartsWith(protocol::kUnknownCommand))},
      {{"INFO", "replication"}, any()},
      {{"INFO", "server"}, any()},
      {{"CLUSTER", "NODES"}, no_cluster()},
      {{"GET", "__Booksleeve_TieBreak"}, null()},
      {{"ECHO", echo}, text(echo)},
  });
  EXPECT_THAT(replies[12].text, HasSubstr("redis_version:"));
}

// The second connection of StackExchange.Redis subscribes in RESP2.
TEST_F(ClientHandshakesTest, StackExchangeSubscribes) {
  shake({
      {{"AUTH", "nobody", "nonsense"}, error_like(StartsWith("WRONGPASS "))},
      {{"SUBSCRIBE", "__Booksleeve_MasterChanged"},
       Field(&Reply::elements,
             ElementsAre(text("subscribe"), text("__Booksleeve_MasterChanged"), number(1)))},
      {{"UNSUBSCRIBE"}, any()},
  });
}

TEST_F(ClientHandshakesTest, Predis3) {
  const auto replies =
      shake({{{"HELLO", "2", "SETNAME", "predis"}, any()}, lib_name_, lib_version_});
  EXPECT_EQ(replies[0].type, Reply::Type::kArray);
  ASSERT_GE(replies[0].elements.size(), 6U);
  EXPECT_THAT(replies[0].elements[4], text("proto"));
  EXPECT_THAT(replies[0].elements[5], number(2));
}

TEST_F(ClientHandshakesTest, Memtier) {
  shake({{{"HELLO", "2"}, any()}, {{"SELECT", "0"}, ok()}, {{"CLUSTER", "SLOTS"}, no_cluster()}});
}

TEST_F(ClientHandshakesTest, RedisBenchmark) {
  const auto flat = Reply::Type::kArray;
  EXPECT_EQ(run({"CONFIG", "SET", "save", ""}), kOk);
  shake({{{"CONFIG", "GET", "save"}, holds(flat, "save", "")},
         {{"CONFIG", "GET", "appendonly"}, holds(flat, "appendonly", "yes")}});
}

TEST_F(ClientHandshakesTest, RedisInsight) {
  const auto replies = shake({
      {{"hello", "3"}, any()},
      {{"info"}, any()},
      {{"module", "list"}, any()},
      {{"command", "info", "bf.info", "ft._list", "json.get"}, any()},
      {{"config", "get", "databases"}, holds(Reply::Type::kMap, "databases", "16")},
      {{"dbsize"}, number(0)},
      {{"cluster", "info"}, no_cluster()},
      {{"scan", "0", "MATCH", "*", "COUNT", "200"}, any()},
      {{"client", "list"}, any()},
      {{"slowlog", "get", "10"}, any()},
      {{"memory", "stats"}, any()},
  });
  ASSERT_EQ(replies[2].elements.size(), 1U);
  EXPECT_THAT(value_of(replies[2].elements[0], "name"), text("bf"));
  EXPECT_GE(value_of(replies[2].elements[0], "ver").integer, 20820);
  ASSERT_THAT(replies[3].elements, ElementsAre(_, null(), null()));
  EXPECT_THAT(replies[3].elements[0].elements.at(0), text("bf.info"));
}

TEST_F(ClientHandshakesTest, Sentinel) {
  const auto run_id = Truly([](const Reply& reply) {
    const size_t start = reply.text.find("\r\nrun_id:") + 9;
    return reply.text.find_first_not_of("0123456789abcdef", start) == start + 40;
  });
  shake({
      {{"CLIENT", "SETNAME", "sentinel-a1b2c3d4-cmd"}, ok()},
      {{"PING"}, text("PONG")},
      {{"INFO"}, run_id},
      {{"PUBLISH", "__sentinel__:hello", "127.0.0.1,26379,x,0,m,127.0.0.1,6379,0"}, number(0)},
      {{"MULTI"}, ok()},
      {{"SLAVEOF", "NO", "ONE"}, text("QUEUED")},
      {{"CONFIG", "REWRITE"}, text("QUEUED")},
      {{"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}, text("QUEUED")},
      {{"CLIENT", "KILL", "TYPE", "pubsub"}, text("QUEUED")},
      {{"EXEC"}, any()},
  });
}

// The health check of HAProxy, as a RESP array.
TEST_F(ClientHandshakesTest, HealthChecksByArray) {
  EXPECT_EQ(answer("*1\r\n$4\r\nPING\r\n"), "+PONG\r\n");
  EXPECT_EQ(answer("QUIT\r\n"), "+OK\r\n(end)");
}

TEST_F(ClientHandshakesTest, HealthChecksByLine) {
  const std::string said = answer("PING\r\ninfo replication\r\nQUIT\r\n");
  EXPECT_THAT(said, StartsWith("+PONG\r\n"));
  EXPECT_THAT(said, HasSubstr("role:master\r\n"));
  EXPECT_THAT(said, testing::EndsWith("+OK\r\n(end)"));
}

TEST_F(ClientHandshakesTest, HealthChecksByTelnet) {
  EXPECT_EQ(answer("PING\nQUIT\n"), "+PONG\r\n+OK\r\n(end)");
}

// Sends the commands that redis-cli reads from its standard input.
TEST_F(ClientHandshakesTest, RedisCliSendsASession) {
  const std::vector<std::vector<std::string>> session = {{"SET", "a key", "line\r\nbreak"},
                                                         {"STRLEN", "a key"},
                                                         {"MULTI"},
                                                         {"INCR", "n"},
                                                         {"EXEC"},
                                                         {"SELECT", "1"},
                                                         {"DBSIZE"}};
  std::string said;
  for (const auto& words : session) said += answer(request_of(words));
  EXPECT_EQ(said, "+OK\r\n:11\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n+OK\r\n:0\r\n");
}

TEST_F(ClientHandshakesTest, InfoHasTheFieldsThatToolsLookFor) {
  const std::string said = answer(request_of({"INFO"}));
  for (const char* field :
       {"redis_version:", "role:master\r\n", "loading:0\r\n", "used_memory:", "run_id:"}) {
    EXPECT_THAT(said, HasSubstr(field));
  }
}

TEST_F(ClientHandshakesTest, AnEmptyKeyspaceIsAnEmptySection) {
  EXPECT_EQ(replies_in(answer(request_of({"INFO", "keyspace"}))).at(0).text, "# Keyspace\r\n");
}

}  // namespace
}  // namespace server::net
