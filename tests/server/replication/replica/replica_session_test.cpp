// SPDX-License-Identifier: MIT
//
// Tests sessions of a replica with leaders that serve, stop sending, or send commands that this
// server lacks.
#include "server/replication/replica/replica_session.h"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/permissions.h"
#include "server/durability/durability.h"
#include "server/durability/log/append_log.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/error_matcher.h"
#include "tests/support/replica_fixture.h"
#include "tests/support/set_option.h"
#include "tests/support/snapshots.h"

namespace server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;

using ReplicaSessionTest = ReplicaFixture;

TEST_F(ReplicaSessionTest, TellsTheLeaderWhereItListensAndWhatItCan) {
  begin_stream(kEmptySnapshot);
  ASSERT_EQ(played_.said.size(), 5U);
  EXPECT_EQ(played_.said[0], "PING");
  EXPECT_EQ(played_.said[1], "REPLCONF listening-port " + std::to_string(config_.port()));
  EXPECT_EQ(played_.said[2], "REPLCONF capa eof capa psync2 capa bloomery");
  EXPECT_EQ(played_.said[3], "REPLCONF cluster-node ?");
  EXPECT_THAT(played_.said[4], MatchesRegex("PSYNC [0-9a-f]+ [0-9]+"));
  EXPECT_EQ(played_.said[4].find(' ', 6), 6 + played_.kId.size());
}

TEST_F(ReplicaSessionTest, AnnouncesAnotherAddressWhenItShall) {
  run({"CONFIG", "SET", "replica-announce-port", "7777", "replica-announce-ip", "10.1.2.3"});
  begin_stream(kEmptySnapshot);
  EXPECT_THAT(played_.said, IsSupersetOf({std::string("REPLCONF listening-port 7777"),
                                          std::string("REPLCONF ip-address 10.1.2.3")}));
}

TEST_F(ReplicaSessionTest, AskedForAPasswordItNamesTheOptions) {
  played_.answers["PING"] = encoded_error(kNotAuthenticated);
  played_.answers["REPLCONF"] = encoded_error(kNotAuthenticated);
  ask_to_follow(played_);
  played_.await_psync();
  played_.say(encoded_error(kNotAuthenticated));
  EXPECT_TRUE(played_.await_end());
  await([this] { return info("replication", "master_link_down_reason") != "(none)"; });
  EXPECT_EQ(link_status(), "down");
  EXPECT_THAT(info("replication", "master_link_down_reason"),
              MatchesRegex(".*NOAUTH .*\\(masterauth, masteruser\\)"));
  EXPECT_THAT(log(), HasSubstr("The link to the leader is down"));
}

TEST_F(ReplicaSessionTest, AWrongPasswordEndsTheLink) {
  run({"CONFIG", "SET", "masterauth", "wrong"});
  played_.answers["AUTH"] = "-WRONGPASS invalid username-password pair\r\n";
  ask_to_follow(played_);
  EXPECT_EQ(played_.await_psync(), "") << "it does not ask for the stream";
  EXPECT_THAT(played_.said, Contains("AUTH wrong"));
  await([this] { return info("replication", "master_link_down_reason") != "(none)"; });
  EXPECT_THAT(info("replication", "master_link_down_reason"),
              HasSubstr("Unable to AUTH to MASTER: -WRONGPASS"));
}

TEST_F(ReplicaSessionTest, ANewPasswordIsTriedAtOnce) {
  run({"CONFIG", "SET", "masterauth", "wrong"});
  played_.answers["AUTH"] = "-WRONGPASS invalid username-password pair\r\n";
  ask_to_follow(played_);
  played_.await_psync();
  run({"CONFIG", "SET", "masteruser", "mover", "masterauth", "secret"});
  played_.answers.clear();
  played_.await_psync();
  // The replica may have begun this link before the password was changed. In this case only the
  // next link uses the new password.
  if (played_.said[1] == "AUTH wrong") played_.await_psync();
  EXPECT_THAT(played_.said, Contains("AUTH mover secret"));
}

TEST_F(ReplicaSessionTest, ASnapshotTakesThePlaceOfAllData) {
  run({"SET", "old", "goes"});
  begin_stream(one_key_snapshot(), 17);
  await_applied(17);
  EXPECT_EQ(run({"EXISTS", "old"}), integer(0));
  EXPECT_EQ(run({"STRLEN", "sent"}), integer(500));
  EXPECT_EQ(replica_controller_.figures().full_syncs, 1U);
  EXPECT_FALSE(has_temporary_files());
}

TEST_F(ReplicaSessionTest, AMarkMayEndTheSnapshot) {
  begin_stream(one_key_snapshot(), 17, PlayedLeader::kMark);
  await_applied(17);
  EXPECT_EQ(run({"STRLEN", "sent"}), integer(500));
}

TEST_F(ReplicaSessionTest, AnOldLeaderIsAskedWithSync) {
  ask_to_follow(played_);
  played_.await_psync();
  played_.say("-ERR unknown command 'PSYNC'\r\n");
  EXPECT_EQ(played_.await_question(), "SYNC");
  played_.send_snapshot(one_key_snapshot());
  played_.say(commands({{"SELECT", "0"}, {"SET", "more", "1"}}));
  await([this] { return run({"GET", "more"}) == bulk("1"); });
  EXPECT_EQ(run({"STRLEN", "sent"}), integer(500));
}

TEST_F(ReplicaSessionTest, AnOldLeaderGetsNoAcks) {
  ask_to_follow(played_);
  played_.await_psync();
  played_.say("-ERR unknown command 'PSYNC'\r\n");
  played_.await_question();
  played_.send_snapshot(kEmptySnapshot);
  await_link();
  advance_ms(5000);
  played_.say(command({"SET", "more", "1"}));
  await([this] { return run({"GET", "more"}) == bulk("1"); });
  replica_controller_.stop();
  EXPECT_TRUE(played_.await_end());
  EXPECT_TRUE(played_.acks.empty());
}

TEST_F(ReplicaSessionTest, GetackIsAnsweredWithTheOffsetBeforeIt) {
  begin_stream(kEmptySnapshot, 1000);
  const std::string set = command({"SET", "a", "1"});
  const std::string question = command({"REPLCONF", "GETACK", "*"});
  const std::string ping = command({"PING"});
  played_.say(set + question + ping);
  EXPECT_TRUE(played_.await_ack(1000 + set.size()));
  advance_ms(2000);
  EXPECT_TRUE(played_.await_ack(1000 + set.size() + question.size() + ping.size()));
}

TEST_F(ReplicaSessionTest, AcknowledgesOnceASecond) {
  begin_stream(kEmptySnapshot, 1000);
  ASSERT_TRUE(played_.await_ack(1000)) << "that the snapshot is loaded";
  for (int second = 1; second <= 2; ++second) {
    advance_ms(1000);
    EXPECT_TRUE(played_.await_ack(1000)) << second;
  }
}

TEST_F(ReplicaSessionTest, KeepsTheLeadersBytesForReplicasOfItsOwn) {
  begin_stream(kEmptySnapshot, 500);
  std::string data;
  for (size_t i = 0; i < 100; ++i) {
    data += command({"SET", "k" + std::to_string(i), std::string(i, 'v')});
  }
  played_.say(data);
  const std::string end = std::to_string(500 + data.size());
  await([&] { return info("replication", "master_repl_offset") == end; });
  EXPECT_EQ(info("replication", "master_replid"), played_.kId);
  EXPECT_EQ(info("replication", "repl_backlog_first_byte_offset"), "501");
  EXPECT_EQ(info("replication", "repl_backlog_histlen"), std::to_string(data.size()));
}

TEST_F(ReplicaSessionTest, ATransactionIsSeenWhole) {
  begin_stream(kEmptySnapshot);
  const std::string opening = commands({{"SELECT", "0"}, {"MULTI"}, {"SET", "a", "1"}});
  const std::string second = command({"SET", "b", "1"});
  const std::string end = command({"EXEC"});
  size_t said = 0;
  for (const std::string& part : {opening, second}) {
    played_.say(part);
    said += part.size();
    await([&] { return replica_controller_.figures().read_offset == static_cast<int64_t>(said); });
    EXPECT_EQ(run({"MGET", "a", "b"}), array({kNull, kNull}));
  }
  played_.say(end);
  await_applied(said + end.size());
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk("1"), bulk("1")}));
  EXPECT_THAT(played_.acks, ElementsAre("0", std::to_string(said + end.size())));
}

TEST_F(ReplicaSessionTest, CountsFailedCommandsAndContinues) {
  begin_stream(kEmptySnapshot);
  const std::string stream =
      commands({{"SET", "a", "text"}, {"INCR", "a"}, {"INCR", "a"}, {"SET", "b", "1"}});
  played_.say(stream);
  await_applied(stream.size());
  EXPECT_EQ(run({"GET", "b"}), bulk("1"));
  EXPECT_EQ(info("stats", "unexpected_error_replies"), "2");
  EXPECT_THAT(log(), HasSubstr("A command of the leader failed: 'INCR'"));
}

TEST_F(ReplicaSessionTest, ALeaderChangesDataAndNothingElse) {
  begin_stream(kEmptySnapshot);
  const std::string stream = commands({{"SHUTDOWN", "NOSAVE"},
                                       {"CONFIG", "SET", "maxclients", "1"},
                                       {"REPLICAOF", "NO", "ONE"},
                                       {"CLIENT", "REPLY", "OFF"},
                                       {"WAIT", "1", "0"},
                                       {"PSYNC", "?", "-1"},
                                       {"SET", "a", "1"}});
  played_.say(stream);
  await_applied(stream.size());
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
  EXPECT_EQ(shutdowns_requested_, 0);
  EXPECT_EQ(info("replication", "role"), "slave");
  EXPECT_EQ(run({"CONFIG", "GET", "maxclients"}), array({bulk("maxclients"), bulk("10000")}));
  EXPECT_EQ(info("stats", "unexpected_error_replies"), "6");
}

TEST_F(ReplicaSessionTest, TheStreamCountsAsCommands) {
  begin_stream(kEmptySnapshot);
  const uint64_t before = std::stoull(info("stats", "total_commands_processed"));
  std::string stream;
  for (const char* name : {"k0", "k1", "k2", "k3", "k4"}) stream += command({"SET", name, "1"});
  stream += command({"DEL", "k0"});
  played_.say(stream);
  await_applied(stream.size());
  EXPECT_THAT(info("commandstats", "cmdstat_set"), ::testing::StartsWith("calls=5,"));
  EXPECT_THAT(info("commandstats", "cmdstat_del"), ::testing::StartsWith("calls=1,"));
  EXPECT_GE(std::stoull(info("stats", "total_commands_processed")), before + 6);
}

TEST_F(ReplicaSessionTest, TheLinkIsListedAsAClient) {
  begin_stream(kEmptySnapshot);
  const std::string list = run({"CLIENT", "LIST", "TYPE", "master"});
  EXPECT_THAT(list, HasSubstr("addr=127.0.0.1:" + std::to_string(played_.port()) + " "));
  EXPECT_THAT(list, HasSubstr(" flags=M "));
}

TEST_F(ReplicaSessionTest, AKilledLinkComesBackWhereItStopped) {
  begin_stream(kEmptySnapshot, 100);
  EXPECT_EQ(run({"CLIENT", "KILL", "TYPE", "master"}), integer(1));
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(played_.await_psync(), "PSYNC " + played_.kId + " 101");
  played_.say("+CONTINUE\r\n");
  const std::string set = command({"SET", "a", "1"});
  played_.say(set);
  await_applied(100 + set.size());
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
  EXPECT_EQ(replica_controller_.figures().full_syncs, 1U);
  EXPECT_EQ(replica_controller_.figures().partial_syncs, 1U);
  EXPECT_THAT(log(), HasSubstr("killed by a client"));
}

TEST_F(ReplicaSessionTest, ASilentLeaderIsLeft) {
  run({"CONFIG", "SET", "repl-timeout", "2"});
  begin_stream(kEmptySnapshot, 100);
  advance_ms(2100);
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(played_.await_psync(), "PSYNC " + played_.kId + " 101");
}

TEST_F(ReplicaSessionTest, ForeignTypesAreRefusedBeforeAnythingIsLost) {
  const std::string mixed = [] {
    snapshots::Container container;
    constexpr uint8_t kList = 1;
    container.key(kList, "list");
    container.u8(1);
    container.text("element");
    container.string_key("text", "taken");
    return container.sealed();
  }();
  run({"SET", "old", "stays"});
  ask_to_follow(played_);
  played_.await_psync();
  played_.full_resync(mixed);
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(run({"GET", "old"}), bulk("stays"));
  await([this] { return info("replication", "master_link_down_reason") != "(none)"; });
  EXPECT_THAT(info("replication", "master_link_down_reason"),
              MatchesRegex(".*snapshot is not taken.*no values of type.*"));
  EXPECT_GE(replica_controller_.failures().pause_ms(), 1000)
      << "each attempt costs the leader a snapshot";
  run({"CONFIG", "SET", "rdb-foreign-types", "skip"});
  played_.await_psync();
  played_.full_resync(mixed);
  await_link();
  EXPECT_EQ(run({"GET", "text"}), bulk("taken"));
  EXPECT_EQ(run({"EXISTS", "old"}), integer(0));
  const std::string lines = log();
  EXPECT_THAT(lines, HasSubstr("or at REPLICAOF or CONFIG SET rdb-foreign-types"));
  EXPECT_THAT(lines, MatchesRegex("(.|\n)*Skipped .* of type(.|\n)*"));
}

TEST_F(ReplicaSessionTest, StopsAtAnUnknownCommandUntilItMaySkipIt) {
  const std::string begin = commands({{"SELECT", "0"}, {"SET", "a", "1"}});
  const std::string rest = commands({{"HSET", "h", "f", "v"},
                                     {"MULTI"},
                                     {"INCR", "a"},
                                     {"RPUSH", "l", "x"},
                                     {"EXEC"},
                                     {"PUBLISH", "channel", "text"},
                                     {"SET", "b", "2"}});
  begin_stream(kEmptySnapshot);
  played_.say(begin + rest);
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
  await([this] { return link_status() == "down"; });
  EXPECT_THAT(info("replication", "master_link_down_reason"),
              HasSubstr("sends 'HSET', which this server does not have"));
  run({"CONFIG", "SET", "rdb-foreign-types", "skip"});
  EXPECT_EQ(played_.await_psync(), fmt::format("PSYNC {} {}", played_.kId, begin.size() + 1));
  played_.say("+CONTINUE\r\n" + rest);
  await_applied(begin.size() + rest.size());
  EXPECT_EQ(run({"GET", "a"}), bulk("2")) << "the transaction went on without RPUSH";
  EXPECT_EQ(run({"GET", "b"}), bulk("2"));
  EXPECT_EQ(replica_controller_.figures().full_syncs, 1U);
}

TEST_F(ReplicaSessionTest, InfoNamesTheUnknownCommandUntilSkipped) {
  const std::string poison = command({"LPUSH", "list", "x"});
  begin_stream(kEmptySnapshot);
  played_.say(poison);
  for (int attempt = 0; attempt < 7; ++attempt) {
    EXPECT_TRUE(played_.await_end());
    retry_now();
    EXPECT_EQ(played_.await_psync(), "PSYNC " + played_.kId + " 1");
    played_.say("+CONTINUE\r\n" + poison);
  }
  EXPECT_TRUE(played_.await_end());
  await([this] { return link_status() == "down"; });
  const std::string reason = info("replication", "master_link_down_reason");
  EXPECT_THAT(reason, HasSubstr("'LPUSH', which this server does not have"));
  EXPECT_THAT(reason, HasSubstr("rdb-foreign-types skip"));
  run({"CONFIG", "SET", "rdb-foreign-types", "skip"});
  played_.await_psync();
  played_.say("+CONTINUE\r\n" + poison);
  await_applied(poison.size());
  EXPECT_EQ(info("replication", "master_link_down_reason"), "(none)");
  replica_controller_.stop();
  EXPECT_EQ(log_.count("The link to the leader is down"), 1U);
  EXPECT_LE(log_.count("The leader goes on"), 1U);
  EXPECT_THAT(log(), HasSubstr("The link to the leader works again after"));
}

TEST_F(ReplicaSessionTest, AKeyHasExpiredWhenTheLeaderSaysSo) {
  const std::string expiry = std::to_string(clock_.wall_ms() + 1);
  const std::string stream =
      commands({{"SET", "short", "1"}, {"SET", "long", "1"}, {"PEXPIREAT", "short", expiry}});
  begin_stream(kEmptySnapshot);
  played_.say(stream);
  await_applied(stream.size());
  advance_ms(600);
  EXPECT_EQ(run({"GET", "short"}), kNull) << "readers do not see it";
  EXPECT_EQ(run({"EXISTS", "short"}), integer(0));
  EXPECT_EQ(run({"DBSIZE"}), integer(2)) << "but it is there";
  played_.say(command({"DEL", "short"}));
  await([this] { return run({"DBSIZE"}) == integer(1); });
  EXPECT_EQ(info("stats", "expired_keys"), "0");
}

// If a command of the stream fails, the replica's data differ from the leader's, so the replica
// needs a full sync.
TEST_F(ReplicaSessionTest, FailedEffectAsksForAFullSync) {
  run({"CONFIG", "SET", "replica-read-only", "no"});
  begin_stream(own_snapshot());
  EXPECT_EQ(run({"SET", "number", "of another kind"}), kOk);
  played_.say(command({"INCR", "number"}));
  EXPECT_TRUE(played_.await_end());
  await([this] { return link_status() == "down"; });
  EXPECT_THAT(info("replication", "master_link_down_reason"),
              HasSubstr("its 'INCR' failed here, so that all data shall come anew"));
  EXPECT_EQ(played_.await_psync(), "PSYNC ? -1");
  played_.full_resync(own_snapshot());
  const std::string stream = command({"INCR", "number"});
  await_link();
  played_.say(stream);
  await_applied(stream.size());
  EXPECT_EQ(run({"GET", "number"}), bulk("1"));
}

TEST_F(ReplicaSessionTest, TellsWhatIsOnItsDisk) {
  set_option(config_, OptionId::kAppendOnly, "yes");
  ASSERT_TRUE(durability_.recover([this](CommandOrigin origin) {
    return std::make_unique<CommandReplayer>(services_, origin);
  }));
  durability_.availability.end(Availability::kLoading);
  begin_stream(own_snapshot());
  const std::string set = command({"SET", "a", "1"});
  played_.say(set);
  await_applied(set.size());
  EXPECT_NE(played_.synced, std::to_string(set.size())) << "nothing has synced it yet";
  ASSERT_TRUE(durability_.append_log.flush());
  const std::string question = command({"REPLCONF", "GETACK", "*"});
  const std::string end = std::to_string(set.size() + question.size());
  await([&] {
    advance_ms(1000);
    return played_.await_ack(set.size() + question.size()) && played_.synced == end;
  });
}

TEST_F(ReplicaSessionTest, AcksReportFailingLogInCluster) {
  replication_.cluster_place().node_id = std::string(40, 'b');
  begin_stream(own_snapshot());
  const auto last_ack_ends_with = [this](std::string_view words) {
    await([this, words] {
      advance_ms(1000);
      return played_.await_ack(0) && played_.last_ack.ends_with(words);
    });
  };
  last_ack_ends_with("ACK 0");
  (void)durability_.availability.append_log_failed("No space left on device");
  last_ack_ends_with("ACK 0 append-log fails");
}

TEST_F(ReplicaSessionTest, ReportsNoSyncedOffsetWithoutALog) {
  begin_stream(own_snapshot());
  const std::string set = command({"SET", "a", "1"});
  played_.say(set);
  await_applied(set.size());
  EXPECT_EQ(played_.synced, "");
}

}  // namespace
}  // namespace server
