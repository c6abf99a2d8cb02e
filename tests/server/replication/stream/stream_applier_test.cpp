// SPDX-License-Identifier: MIT
#include "server/replication/stream/stream_applier.h"

#include <gtest/gtest.h>

#include "server/dispatch/command_replayer.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using Command = StreamSplitter::Command;
using Unserved = StreamApplier::Unserved;

class StreamApplierTest : public CommandTest {
 protected:
  StreamApplier applier(unsigned database = 0,
                        CommandOrigin origin = CommandOrigin::kForeignJournal) {
    return StreamApplier(std::make_unique<CommandReplayer>(services_, origin), origin, database,
                         figures_, config_);
  }
  bool apply(StreamApplier& applier, const std::vector<Command>& commands,
             Unserved unserved = Unserved::kRefuse) {
    return applier.apply(commands, unserved).has_value();
  }

  StreamApplier::Figures figures_;
};

TEST_F(StreamApplierTest, CommandsAreCarriedOutInTheirDatabase) {
  auto applier = this->applier(2);
  EXPECT_TRUE(apply(applier, {{"SET", "a", "1"}}));
  EXPECT_EQ(applier.database(), 2U);
  EXPECT_TRUE(apply(applier, {{"select", "3"}}));
  EXPECT_EQ(applier.database(), 3U);
  EXPECT_TRUE(apply(applier, {{"SET", "b", "2"}}));
  run({"SELECT", "2"});
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n1\r\n");
  run({"SELECT", "3"});
  EXPECT_EQ(run({"GET", "b"}), "$1\r\n2\r\n");
}

TEST_F(StreamApplierTest, AGroupIsCarriedOutWhole) {
  auto applier = this->applier();
  EXPECT_TRUE(apply(
      applier, {{"MULTI"}, {"SET", "a", "1"}, {"SELECT", "1"}, {"BF.ADD", "f", "x"}, {"EXEC"}}));
  EXPECT_EQ(applier.database(), 1U);
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n1\r\n");
  run({"SELECT", "1"});
  EXPECT_EQ(run({"BF.EXISTS", "f", "x"}), ":1\r\n");
  EXPECT_TRUE(apply(applier, {{"MULTI"}, {"EXEC"}}));
  EXPECT_EQ(figures_.failed_commands, 0U);
}

TEST_F(StreamApplierTest, ErrorsAreCountedAndTheRestGoesOn) {
  auto applier = this->applier();
  run({"SET", "text", "abc"});
  EXPECT_TRUE(apply(applier, {{"INCR", "text"}}));
  EXPECT_TRUE(apply(applier, {{"GET"}})) << "wrong arity";
  EXPECT_EQ(figures_.failed_commands, 2U);
  EXPECT_TRUE(apply(applier, {{"MULTI"}, {"INCR", "text"}, {"GET"}, {"SET", "b", "1"}, {"EXEC"}}));
  EXPECT_EQ(figures_.failed_commands, 4U);
  EXPECT_EQ(run({"GET", "b"}), "$1\r\n1\r\n");
}

TEST_F(StreamApplierTest, EffectsThatFailEndTheStream) {
  run({"SET", "text", "abc"});
  const std::vector<std::vector<Command>> units = {
      {{"INCR", "text"}},
      {{"GET"}},
      {{"SELECT", "99"}},
      {{"BF.MADD", "text", "a"}},
      {{"SHUTDOWN", "NOSAVE"}},
      {{"MULTI"}, {"SET", "b", "1"}, {"INCR", "text"}, {"EXEC"}},
      {{"MULTI"}, {"GET"}, {"SET", "c", "1"}, {"EXEC"}},
  };
  for (const auto& unit : units) {
    auto applier = this->applier(0, CommandOrigin::kOwnJournal);
    EXPECT_FALSE(applier.has_diverged());
    EXPECT_FALSE(apply(applier, unit)) << unit.front().front();
    EXPECT_TRUE(applier.has_diverged());
  }
  EXPECT_EQ(figures_.failed_commands, units.size());
  EXPECT_EQ(run({"EXISTS", "c"}), integer(0)) << "refused before any of it was carried out";
}

TEST_F(StreamApplierTest, AnEffectThatFailsInPartEndsTheStream) {
  run({"BF.RESERVE", "f", "0.01", "1", "NONSCALING"});
  auto applier = this->applier(0, CommandOrigin::kOwnJournal);
  EXPECT_FALSE(apply(applier, {{"BF.MADD", "f", "a", "b", "c"}})) << "the filter is full";
  EXPECT_TRUE(applier.has_diverged());
}

TEST_F(StreamApplierTest, EvictedKeysDoNotEndTheStream) {
  const std::vector<std::vector<Command>> units = {
      {{"BF.TURN", "evicted", "1", "1700000000000"}},
      {{"RENAME", "evicted", "b"}},
      {{"MULTI"}, {"RENAME", "evicted", "b"}, {"SET", "c", "1"}, {"EXEC"}},
  };
  run({"CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru",
       "replica-ignore-maxmemory", "no"});
  auto applier = this->applier(0, CommandOrigin::kOwnJournal);
  for (const auto& unit : units) EXPECT_TRUE(apply(applier, unit)) << unit.front().front();
  EXPECT_EQ(figures_.failed_commands, units.size());
  EXPECT_EQ(run({"GET", "c"}), "$1\r\n1\r\n");
  EXPECT_FALSE(apply(applier, {{"SELECT", "99"}}));
  for (const auto& [option, value] : {std::pair{"maxmemory", "0"},
                                      {"maxmemory-policy", "noeviction"},
                                      {"replica-ignore-maxmemory", "yes"}}) {
    run({"CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru",
         "replica-ignore-maxmemory", "no"});
    run({"CONFIG", "SET", option, value});
    auto exact = this->applier(0, CommandOrigin::kOwnJournal);
    EXPECT_FALSE(apply(exact, units.front())) << option;
  }
}

TEST_F(StreamApplierTest, ForeignErrorsEndTheStreamIfDataAreMissing) {
  run({"BF.RESERVE", "f", "0.01", "1", "NONSCALING", "LAYOUT", "redisbloom"});
  auto applier = this->applier();
  EXPECT_TRUE(apply(applier, {{"BF.MADD", "f", "a", "b", "c"}})) << "it was full there, too";
  EXPECT_FALSE(applier.has_diverged());
  EXPECT_FALSE(apply(applier, {{"SETRANGE", "a", "4611686018427387904", "x"}}));
  EXPECT_TRUE(applier.has_diverged());
  auto other = this->applier();
  EXPECT_FALSE(apply(other, {{"SELECT", "99"}})) << "what follows means other keys";
  EXPECT_TRUE(other.has_diverged());
}

TEST_F(StreamApplierTest, AStreamWhoseDatabaseIsNotThereIsNotBegun) {
  auto applier = this->applier(99);
  EXPECT_FALSE(apply(applier, {{"SET", "a", "1"}}));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(StreamApplierTest, UnservedCommandsAreRefusedBeforeAnyOfTheUnit) {
  auto applier = this->applier();
  EXPECT_FALSE(apply(applier, {{"HSET", "h", "f", "v"}}));
  EXPECT_FALSE(apply(applier, {{"MULTI"}, {"SET", "a", "1"}, {"HSET", "h", "f", "v"}, {"EXEC"}}));
  EXPECT_EQ(run({"EXISTS", "a"}), ":0\r\n");
  EXPECT_TRUE(apply(applier, {{"SET", "a", "2"}})) << "the session has left MULTI";
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n2\r\n");
}

TEST_F(StreamApplierTest, UnservedCommandsAreLeftOutWhenAllowed) {
  auto applier = this->applier();
  EXPECT_TRUE(apply(applier, {{"HSET", "h", "f", "v"}}, Unserved::kSkip));
  EXPECT_TRUE(apply(
      applier, {{"MULTI"}, {"SET", "a", "1"}, {"HSET", "h", "f", "v"}, {"INCR", "a"}, {"EXEC"}},
      Unserved::kSkip));
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n2\r\n");
  EXPECT_EQ(figures_.skipped_commands, 2U);
  EXPECT_EQ(figures_.failed_commands, 0U);
}

TEST_F(StreamApplierTest, SkipsUnknownCommandsWithoutKeys) {
  auto applier = this->applier();
  EXPECT_TRUE(apply(applier, {{"FUNCTION", "LOAD", "x"}}));
  // This server knows SCRIPT and FUNCTION, but not as commands of a stream.
  EXPECT_TRUE(apply(applier, {{"FUNCTION", "FLUSH"}}));
  EXPECT_TRUE(apply(applier, {{"MULTI"}, {"SCRIPT", "FLUSH"}, {"SET", "b", "1"}, {"EXEC"}}));
  EXPECT_EQ(run({"GET", "b"}), "$1\r\n1\r\n");
  EXPECT_EQ(figures_.failed_commands, 0U);
  EXPECT_EQ(figures_.skipped_commands, 3U);
  EXPECT_TRUE(apply(applier, {{"MULTI"}, {"SPUBLISH", "c", "m"}, {"SET", "a", "1"}, {"EXEC"}}));
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n1\r\n");
}

TEST_F(StreamApplierTest, RejectsCommandsThatAreNoChange) {
  auto applier = this->applier();
  const std::vector<Command> commands = {
      {"SHUTDOWN", "NOSAVE"},
      {"CONFIG", "SET", "appendonly", "yes"},
      {"REPLICAOF", "NO", "ONE"},
      {"CLIENT", "REPLY", "OFF"},
      {"HELLO", "3"},
      {"QUIT"},
      {"WAIT", "1", "0"},
      {"DEBUG", "SLEEP", "1000"},
      {"BGSAVE"},
      {"AUTH", "x"},
      {"WATCH", "a"},
      {"RESET"},
  };
  for (const Command& command : commands) EXPECT_TRUE(apply(applier, {command}));
  EXPECT_EQ(figures_.failed_commands, commands.size());
  EXPECT_EQ(shutdowns_requested_, 0);
  EXPECT_TRUE(apply(applier, {{"MULTI"}, {"SHUTDOWN"}, {"SET", "a", "1"}, {"EXEC"}}));
  EXPECT_EQ(shutdowns_requested_, 0);
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n1\r\n") << "as with any other error";
}

TEST_F(StreamApplierTest, TheLeaderSaysWhenAKeyHasExpired) {
  auto applier = this->applier();
  EXPECT_TRUE(apply(applier, {{"SET", "a", "1", "PXAT", "1"}}));
  EXPECT_EQ(run({"GET", "a"}), "$-1\r\n") << "readers do not see it";
  EXPECT_TRUE(apply(applier, {{"APPEND", "a", "2"}}));
  EXPECT_TRUE(apply(applier, {{"PERSIST", "a"}}));
  EXPECT_EQ(run({"GET", "a"}), "$2\r\n12\r\n") << "for the stream it was there";
}

}  // namespace
}  // namespace server
