// SPDX-License-Identifier: MIT
#include "server/dispatch/dispatcher.h"

#include <gmock/gmock.h>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "protocol/reply_writer.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/commands/connection/transaction_commands.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class DispatcherTest : public CommandTest {
 protected:
  const std::string kQueued = "+QUEUED\r\n";
  const std::string kNoPassword = error(kNotAuthenticated);

  const CommandCounters& counters_of(std::string_view name) {
    return statistics_.thread(0).commands[registry_->find(name)->index];
  }
};

TEST_F(DispatcherTest, CommandsAreFoundInAnyCase) {
  EXPECT_EQ(run({"ping"}), "+PONG\r\n");
  EXPECT_EQ(run({"PiNg"}), "+PONG\r\n");
  EXPECT_EQ(run({"PING"}), run({"PING"}));
  EXPECT_EQ(run({"pINGx"}), error(protocol::unknown_command("pINGx", "")));
}

TEST_F(DispatcherTest, WordsOfAnUnknownCommandAreQuotedUpTo128Bytes) {
  EXPECT_EQ(run({"nope", "a", "b c"}), error(protocol::unknown_command("nope", "'a' 'b c' ")));
  const std::string long_word(200, 'x');
  EXPECT_EQ(run({long_word}), error(protocol::unknown_command(long_word.substr(0, 128), "")));
  EXPECT_EQ(run({"nope", long_word, "more"}),
            error(protocol::unknown_command("nope", "'") + long_word.substr(0, 128) + "' "));
  EXPECT_EQ(run({std::string("no\0pe", 5)}), error(protocol::unknown_command("no", "")));
}

// An error reply must not contain a line break from the request. Otherwise a client could forge a
// reply for other users of its connection.
TEST_F(DispatcherTest, AReplyLineNeverHoldsTheClientsLineBreak) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"x\r\n+OK", "a"},
                                                {"x", "\r\n-ERR forged\r\n"},
                                                {"SET\r\n", "\n"},
                                                {"CLIENT", "x\r\n+OK"}}) {
    const std::string reply = run(words);
    EXPECT_TRUE(reply.starts_with("-ERR unknown ")) << reply;
    EXPECT_EQ(std::ranges::count(reply, '\r') + std::ranges::count(reply, '\n'), 2) << reply;
  }
}

TEST_F(DispatcherTest, ArityIsCheckedBeforeTheHandler) {
  EXPECT_EQ(run({"GET"}), error(protocol::wrong_arity("get")));
  EXPECT_EQ(run({"GET", "a", "b"}), error(protocol::wrong_arity("get")));
  EXPECT_EQ(run({"CLIENT", "GETNAME", "x"}), error(protocol::wrong_arity("client|getname")));
  EXPECT_EQ(run({"CLIENT"}), error(protocol::wrong_arity("client")));
  EXPECT_EQ(counters_of("get").rejected.value(), 2U);
  EXPECT_EQ(counters_of("get").calls.value(), 0U);
}

TEST_F(DispatcherTest, UnknownSubcommandsNameTheHelp) {
  EXPECT_EQ(run({"client", "Nope"}), error(protocol::unknown_subcommand("Nope", "CLIENT")));
  EXPECT_TRUE(run({"CLIENT", "HELP"}).starts_with("*"));
}

TEST_F(DispatcherTest, OnlyAuthenticationIsAnsweredBeforeIt) {
  users_.set_default_password("secret");
  client_->session->authenticated = false;
  for (const std::vector<std::string>& command : {std::vector<std::string>{"PING"},
                                                  {"GET", "k"},
                                                  {"BF.ADD", "f", "x"},
                                                  {"CONFIG", "GET", "*"},
                                                  {"MULTI"},

                                                  {"CLIENT", "LIST"}}) {
    EXPECT_EQ(run(command), kNoPassword) << command[0];
  }
  EXPECT_THAT(run({"EXEC"}), is_error("EXECABORT", kNotAuthenticated));
  // As in Redis, the errors for an unknown command and for a wrong number of arguments take
  // precedence over NOAUTH.
  EXPECT_EQ(run({"GET"}), error(protocol::wrong_arity("get")));
  EXPECT_THAT(run({"nope"}), is_error("ERR", "unknown command"));
  EXPECT_EQ(run({"QUIT"}), kOk);
}

TEST_F(DispatcherTest, ARejectedExecIsCountedByItsReply) {
  run({"MULTI"});
  EXPECT_THAT(run({"EXEC", "x"}), is_error("EXECABORT", "arguments"));
  const std::string info = run({"INFO", "errorstats"});
  EXPECT_THAT(info, HasSubstr("errorstat_EXECABORT:count=1"));
  EXPECT_THAT(info, Not(HasSubstr("errorstat_ERR")));
}

TEST_F(DispatcherTest, CallsFailuresAndRejectionsAreCountedApart) {
  run({"SET", "a", "x"});
  run({"GET", "a"});
  EXPECT_EQ(run({"INCR", "a"}), error(kNotAnInteger));
  run({"GET"});
  EXPECT_EQ(counters_of("get").calls.value(), 1U);
  EXPECT_EQ(counters_of("get").failed.value(), 0U);
  EXPECT_EQ(counters_of("get").rejected.value(), 1U);
  EXPECT_EQ(counters_of("incr").calls.value(), 1U);
  EXPECT_EQ(counters_of("incr").failed.value(), 1U);
  EXPECT_EQ(counters_of("incr").rejected.value(), 0U);
  EXPECT_EQ(statistics_.thread(0).commands_processed.value(), 3U);
  EXPECT_EQ(statistics_.errors().at("ERR"), 2U);
}

TEST_F(DispatcherTest, ErrorsAreCountedUnderTheirCode) {
  run({"SET", "a", "x"});
  run({"BF.ADD", "a", "x"});
  run({"nope"});
  users_.set_default_password("secret");
  client_->session->authenticated = false;
  run({"GET", "a"});
  EXPECT_EQ(statistics_.errors(),
            (std::map<std::string, uint64_t>{{"ERR", 1}, {"NOAUTH", 1}, {"WRONGTYPE", 1}}));
}

TEST_F(DispatcherTest, OutOfMemoryStopsWhatTakesMore) {
  // The test fills memory with a filter, because the arrays of filters count as used memory even
  // with a sanitizer's allocator.
  EXPECT_EQ(run({"BF.RESERVE", "filter", "0.01", "10000000"}), kOk);
  EXPECT_EQ(run({"CONFIG", "SET", "maxmemory", "1"}), kOk);
  memory_.set_limit(1);
  memory_.refresh();
  EXPECT_EQ(run({"SET", "a", "1"}), error(kOutOfMemory));
  EXPECT_EQ(run({"GET", "a"}), kNull);
  EXPECT_EQ(run({"DEL", "a"}), integer(0));
  // A queued command takes memory. So even GET is rejected after MULTI while memory exceeds the
  // limit.
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"GET", "a"}), error(kOutOfMemory));
  EXPECT_EQ(run({"EXEC"}), error(kTransactionDiscarded));
}

TEST_F(DispatcherTest, QueuedCommandsRunWithExec) {
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"SET", "a", "1"}), kQueued);
  EXPECT_EQ(run({"GET", "a"}), kQueued);
  EXPECT_EQ(client_->session->client->queued_commands, 2);
  EXPECT_EQ(run_as_other({"GET", "a"}), kNull);
  EXPECT_EQ(run({"EXEC"}), array({kOk, bulk("1")}));
  EXPECT_EQ(client_->session->client->queued_commands, -1);
  EXPECT_EQ(counters_of("set").calls.value(), 1U);
}

TEST_F(DispatcherTest, ARefusedCommandSpoilsTheTransaction) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"nope"}, {"GET"}, {"CLIENT", "nope"}}) {
    EXPECT_EQ(run({"MULTI"}), kOk);
    EXPECT_EQ(run({"SET", "a", "1"}), kQueued);
    EXPECT_TRUE(run(command).starts_with("-ERR ")) << command[0];
    EXPECT_EQ(run({"EXEC"}), error(kTransactionDiscarded));
    EXPECT_EQ(run({"GET", "a"}), kNull);
  }
}

TEST_F(DispatcherTest, ForbiddenCommandsInTransactionAreRejected) {
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"BGREWRITEAOF"}), kQueued);
  EXPECT_EQ(run({"SHUTDOWN"}), error(kNotInTransaction));
  run({"DISCARD"});
}

TEST_F(DispatcherTest, SubscribersThatSpeakResp2MayDoLittleElse) {
  run({"SUBSCRIBE", "c"});
  EXPECT_THAT(run({"GET", "a"}), is_error("ERR", "'get'"));
  EXPECT_EQ(run({"PING"}), array({bulk("pong"), bulk("")}));
  client_->session->client->resp = protocol::RespVersion::kResp3;
  EXPECT_EQ(run({"GET", "a"}), "_\r\n");
}

TEST_F(DispatcherTest, HttpRequestsEndTheConnectionUnanswered) {
  EXPECT_EQ(run({"POST", "/", "HTTP/1.1"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
  EXPECT_EQ(run_as_other({"Host:", "a"}), "");
  EXPECT_EQ(other_->last_result.outcome, Outcome::kClose);
}

TEST_F(DispatcherTest, QuitIsAnsweredAndCloses) {
  EXPECT_EQ(run({"QUIT"}), kOk);
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
}

TEST_F(DispatcherTest, HeldBackCommandsLeaveNoTrace) {
  pause_.hold_writes(PauseGate::Hold::kHandover);
  EXPECT_EQ(run({"SET", "a", "1"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  EXPECT_EQ(counters_of("set").calls.value(), 0U);
  EXPECT_EQ(counters_of("set").rejected.value(), 0U);
  EXPECT_EQ(run({"GET", "a"}), kNull);
  // Queueing a write changes no data, so only EXEC is held back.
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"SET", "a", "1"}), kQueued);
  EXPECT_EQ(run({"EXEC"}), "");
  EXPECT_EQ(client_->last_result.outcome, Outcome::kHeldBack);
  pause_.release_writes(PauseGate::Hold::kHandover);
  EXPECT_EQ(run({"EXEC"}), array({kOk}));
}

TEST_F(DispatcherTest, JournalsAreNotJudged) {
  client_->session->origin = CommandOrigin::kOwnJournal;
  durability_.availability.begin(Availability::kReadOnlyReplica);
  durability_.availability.begin(Availability::kLoading);
  pause_.hold_writes(PauseGate::Hold::kHandover);
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
  EXPECT_TRUE(client_->last_result.may_have_written);
}

TEST_F(DispatcherTest, OnlyResultsOfWritesReportAWrite) {
  run({"GET", "a"});
  EXPECT_FALSE(client_->last_result.may_have_written);
  run({"SET", "a", "1"});
  EXPECT_TRUE(client_->last_result.may_have_written);
  run({"MULTI"});
  run({"SET", "a", "2"});
  EXPECT_FALSE(client_->last_result.may_have_written);
  run({"EXEC"});
  EXPECT_TRUE(client_->last_result.may_have_written);
}

TEST_F(DispatcherTest, AnEndingSessionLetsGoOfWhatItShares) {
  run({"WATCH", "a"});
  run({"SUBSCRIBE", "c"});
  client_->dispatcher.end_session();
  EXPECT_FALSE(client_->session->subscriptions.any());
  EXPECT_TRUE(client_->session->transaction.watched.empty());
  EXPECT_EQ(run_as_other({"PUBLISH", "c", "x"}), integer(0));
}

TEST_F(DispatcherTest, LookingAheadChangesNothing) {
  run({"SET", "a", "1"});
  run({"BF.ADD", "f", "x"});
  const std::vector<std::vector<std::string_view>> words = {
      {"GET", "a"}, {"BF.EXISTS", "f", "x"}, {"BF.EXISTS", "f"}, {"BF.ADD", "a", "x"}, {"nope"},
      {"PING"},     {"GET", "none"},         {"GET", "a"}};
  std::vector<Request> requests;
  for (const auto& args : words) requests.push_back({.args = args});
  const uint64_t hits = statistics_.thread(0).keyspace_hits.value();
  client_->dispatcher.look_ahead(requests, clock_.now_ms);
  EXPECT_EQ(statistics_.thread(0).keyspace_hits.value(), hits);
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
  EXPECT_EQ(run({"BF.EXISTS", "f", "x"}), integer(1));
}

TEST_F(DispatcherTest, LookingAheadNotesWhatFollowsFromTheWords) {
  run({"BF.ADD", "f", "x"});
  run({"BF.RESERVE", "v", "0.01", "100", "LAYOUT", "valkeybloom"});
  const std::vector<std::vector<std::string_view>> words = {
      {"GET", "a"}, {"BF.EXISTS", "f", "x"}, {"BF.EXISTS", "v", "x"}, {"nope", "a"}, {"PING"}};
  std::vector<Request> requests;
  for (const auto& args : words) requests.push_back({.args = args});
  client_->dispatcher.look_ahead(requests, clock_.now_ms);
  EXPECT_EQ(requests[0].command, registry_->find("get"));
  EXPECT_EQ(requests[0].key.data(), words[0][1].data());
  EXPECT_EQ(requests[0].key_hash, keyspace_.ref("a").hash);
  EXPECT_EQ(requests[0].preview.kind, 0U);
  EXPECT_NE(requests[1].preview.kind, 0U);
  // look_ahead() must not hash an item whose hash depends on the filter, because the filter may be
  // deleted before the command runs.
  EXPECT_EQ(requests[2].preview.kind, 0U);
  EXPECT_EQ(requests[3].command, nullptr);
  EXPECT_EQ(requests[4].command, registry_->find("ping"));
  EXPECT_EQ(requests[4].key.data(), nullptr);
}

TEST_F(DispatcherTest, LookAheadHashesOnlyKeysThatDiffer) {
  const std::vector<std::vector<std::string_view>> words = {
      {"GET", "a"}, {"SET", "a", "1"}, {"GET", "b"}, {"GET", "ab"},
      {"GET", ""},  {"GET", ""},       {"PING"},     {"GET", "ab"}};
  std::vector<Request> requests;
  for (const auto& args : words) requests.push_back({.args = args});
  client_->dispatcher.look_ahead(requests, clock_.now_ms);
  for (const Request& request : requests) {
    if (request.args.size() < 2) continue;
    EXPECT_EQ(request.key_hash, keyspace_.ref(request.args[1]).hash) << request.args[1];
  }
}

TEST_F(DispatcherTest, PipelineCommandsSeeEarlierChanges) {
  run({"BF.ADD", "f", "x"});
  const std::vector<std::string> answers =
      run_pipeline({{"SET", "a", "1"},
                    {"SELECT", "1"},
                    {"GET", "a"},
                    {"BF.EXISTS", "f", "x"},
                    {"SELECT", "0"},
                    {"DEL", "f"},
                    {"BF.RESERVE", "f", "0.01", "100", "LAYOUT", "redisbloom"},
                    {"BF.EXISTS", "f", "x"},
                    {"BF.ADD", "f", "x"},
                    {"BF.EXISTS", "f", "x"},
                    {"CONFIG", "nope"},
                    {"nope"},
                    {"GET", "a"}});
  const std::vector<std::string> expected = {kOk,        kOk, kNull,      integer(0), kOk,
                                             integer(1), kOk, integer(0), integer(1), integer(1)};
  EXPECT_EQ(std::vector(answers.begin(), answers.begin() + 10), expected);
  EXPECT_TRUE(answers[10].starts_with("-ERR unknown subcommand 'nope'")) << answers[10];
  EXPECT_TRUE(answers[11].starts_with("-ERR unknown command 'nope'")) << answers[11];
  EXPECT_EQ(answers[12], bulk("1"));
}

class DurationTest : public DispatcherTest {
 protected:
  uint64_t ticks_of(std::string_view command) { return counters_of(command).ticks.value(); }
};

TEST_F(DurationTest, TheCommandsOfAPipelineShareItsTime) {
  const std::string item(1 << 20, 'x');
  const uint64_t begin = TickClock::now();
  run_pipeline({{"PING"}, {"BF.ADD", "f", item}, {"ECHO", item}, {"nope"}, {"GET", "a"}});
  const uint64_t all = TickClock::now() - begin;
  for (const char* const command : {"ping", "bf.add", "echo", "get"}) {
    EXPECT_GT(ticks_of(command), 0U) << command;
  }
  EXPECT_LE(ticks_of("ping") + ticks_of("bf.add") + ticks_of("echo") + ticks_of("get"), all);
}

TEST_F(DurationTest, TimeBetweenPipelinesIsNotCounted) {
  run_pipeline({{"ECHO", "a"}});
  const uint64_t begin = TickClock::now();
  run_pipeline({{"PING"}});
  EXPECT_LE(ticks_of("ping"), TickClock::now() - begin);
  const uint64_t second = TickClock::now();
  run({"GET", "a"});
  EXPECT_LE(ticks_of("get"), TickClock::now() - second);
}

TEST_F(DurationTest, ATransactionTakesAsLongAsItsCommands) {
  const std::string item(1 << 20, 'x');
  run_pipeline({{"MULTI"}, {"ECHO", item}, {"BF.ADD", "f", item}, {"EXEC"}, {"PING"}});
  EXPECT_GT(ticks_of("echo"), 0U);
  EXPECT_GE(ticks_of("exec"), ticks_of("echo") + ticks_of("bf.add"));
}

// In the inline request `RENAME "" "abc"`, the views of both arguments begin at the same address,
// because the first argument is empty.
TEST_F(DispatcherTest, AnEmptyKeyMayBeginWhereTheNextOneDoes) {
  const std::string_view words = "abc";
  const std::vector<std::string> answers = run_pipeline({{"SET", "", "v"},
                                                         {"RENAME", words.substr(0, 0), words},
                                                         {"GET", "abc"},
                                                         {"COPY", words, words.substr(0, 0)},
                                                         {"GET", ""}});
  const std::vector<std::string> expected = {kOk, kOk, bulk("v"), integer(1), bulk("v")};
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(run({"GET", "abc"}), bulk("v"));
  EXPECT_EQ(run({"GET", ""}), bulk("v"));
}

TEST_F(DispatcherTest, QueuedCommandsOfAPipelineReachTheirOwnKeys) {
  run({"BF.ADD", "f", "x"});
  const std::vector<std::string> answers =
      run_pipeline({{"MULTI"}, {"SET", "a", "1"}, {"BF.EXISTS", "f", "y"}, {"EXEC"}, {"GET", "a"}});
  EXPECT_EQ(answers[3], "*2\r\n" + kOk + integer(0));
  EXPECT_EQ(answers[4], bulk("1"));
}

}  // namespace
}  // namespace server
