// SPDX-License-Identifier: MIT
//
// Tests actions that a client must not be able to cause. BLOOMERY_SECURITY_ROUNDS makes the random
// test longer; BLOOMERY_SEED replays it.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "protocol/error_texts.h"
#include "protocol/reply_parser.h"
#include "server/session/session.h"
#include "tests/support/captured_log.h"
#include "tests/support/clients_fixture.h"
#include "tests/support/environment.h"
#include "tests/support/error_matcher.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

using testing::StartsWith;
using WordList = std::vector<std::string>;

class ForbiddenWordsTest : public CommandTest {
 protected:
  void expect_refused(const WordList& words) {
    EXPECT_THAT(run(words), StartsWith("-")) << testing::PrintToString(words);
  }
};

TEST_F(ForbiddenWordsTest, NamesOfClientsForgeNoLines) {
  const auto lines = [this] {
    const std::string list = run({"CLIENT", "LIST"});
    return std::count(list.begin(), list.end(), '\n');
  };
  const auto before = lines();
  for (const std::string& name : {std::string("a b"), std::string("a\nb"), std::string("a\r\nid=9"),
                                  std::string(1, '\0'), std::string("a\0b", 3), std::string("\x7f"),
                                  std::string("\x1b[0m"), std::string("\xc3\xa9")}) {
    for (WordList words : {WordList{"CLIENT", "SETNAME"},
                           {"HELLO", "3", "SETNAME"},
                           {"CLIENT", "SETINFO", "LIB-NAME"},
                           {"CLIENT", "SETINFO", "LIB-VER"}}) {
      words.push_back(name);
      expect_refused(words);
    }
  }
  EXPECT_EQ(lines(), before);
}

// Clients must not be able to choose the server's files, load code, or run debugging commands.
TEST_F(ForbiddenWordsTest, ConfigModuleAndDebugAreNoWeapons) {
  for (const WordList& words : {WordList{"CONFIG", "SET", "dir", "/tmp"},
                                {"CONFIG", "SET", "dbfilename", "x.so"},
                                {"CONFIG", "SET", "dbfilename", "../x"},
                                {"CONFIG", "SET", "appendfilename", "x"},
                                {"CONFIG", "SET", "logfile", "/tmp/x"},
                                {"CONFIG", "SET", "pidfile", "/tmp/x"},
                                {"CONFIG", "SET", "unixsocket", "/tmp/x"},
                                {"CONFIG", "SET", "aclfile", "/tmp/x"},
                                {"CONFIG", "SET", "enable-debug-command", "yes"},
                                {"CONFIG", "SET", "enable-protected-configs", "yes"},
                                {"MODULE", "LOAD", "/tmp/x.so"},
                                {"MODULE", "LOADEX", "/tmp/x.so"},
                                {"MODULE", "UNLOAD", "bf"},
                                {"DEBUG", "SLEEP", "0"},
                                {"DEBUG", "RELOAD"},
                                {"DEBUG", "SEGFAULT"},
                                {"DEBUG", "DIGEST"},
                                {"CONFIG", "REWRITE"}}) {
    expect_refused(words);
  }
  EXPECT_THAT(run({"MODULE", "LIST"}), testing::HasSubstr(bulk("name") + bulk("bf")));
}

// The server has no interpreter, so faults of an interpreter such as CVE-2022-24735, CVE-2024-46981
// and CVE-2025-49844 cannot occur.
TEST_F(ForbiddenWordsTest, ThereIsNoInterpreter) {
  const std::string digest(40, '0');
  for (const WordList& words : {WordList{"EVAL", "return 1", "0"},
                                {"EVALSHA", digest, "0"},
                                {"EVAL_RO", "return 1", "0"},
                                {"FCALL", "f", "0"},
                                {"FCALL_RO", "f", "0"},
                                {"EVALSHA_RO", digest, "0"}}) {
    EXPECT_THAT(run(words), is_error("ERR", "unknown command")) << words[0];
  }
  expect_refused({"SCRIPT", "LOAD", "return 1"});
  expect_refused({"FUNCTION", "LOAD", "#!lua name=x"});
}

// CVE-2025-67733: each command must get exactly one reply, whatever bytes it contains, and an error
// reply must be a single line.
class LineEndsTest : public CommandTest {
 protected:
  // Commands that the test leaves out, because they wait, end the session, delete the data, or
  // reply several times.
  static bool is_left_out(const std::string& name) {
    static const std::set<std::string> kNames{
        "shutdown", "monitor",      "subscribe",    "psubscribe",   "ssubscribe", "psync",
        "sync",     "quit",         "reset",        "unsubscribe",  "replicaof",  "punsubscribe",
        "slaveof",  "sunsubscribe", "wait",         "waitaof",      "failover",   "replconf",
        "debug",    "save",         "bgsave",       "bgrewriteaof", "restore",    "multi",
        "swapdb",   "flushall",     "client|pause", "client|reply", "exec"};
    return kNames.contains(name) || kNames.contains(name.substr(0, name.find('|')));
  }
  WordList names() {
    protocol::ReplyParser parser;
    const std::string list = run({"COMMAND", "LIST"});
    EXPECT_EQ(parser.parse(list), protocol::ReplyParser::Status::kReply);
    WordList names{"nosuch", "client|nosuch", "config|nosuch", "object|x", "debug|x"};
    for (const protocol::Reply& name : parser.reply().elements) {
      if (!is_left_out(name.text)) names.push_back(name.text);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string any_word() {
    static const WordList kPieces{"\r\n", "\n",   "\r", "-ERR x", "+OK\r\n", "$3\r\n", "a", "0",
                                  "\xff", "\x01", "1",  " ",      "'",       "\"",     "%s"};
    std::string word;
    for (size_t i = random_() % 6; i > 0; --i) word += kPieces[random_() % kPieces.size()];
    return word;
  }
  static void expect_one_reply(const std::string& bytes, const WordList& words) {
    protocol::ReplyParser parser;
    ASSERT_EQ(parser.parse(bytes), protocol::ReplyParser::Status::kReply)
        << testing::PrintToString(words) << bytes;
    EXPECT_EQ(parser.consumed(), bytes.size()) << testing::PrintToString(words) << bytes;
    const protocol::Reply& reply = parser.reply();
    if (!reply.is_error()) return;
    EXPECT_EQ(reply.text.find_first_of("\r\n"), std::string::npos) << bytes;
    EXPECT_EQ(bytes.find("\r\n"), bytes.size() - 2) << bytes;
  }

  const uint64_t rounds_ = support::number_of("BLOOMERY_SECURITY_ROUNDS", 2000);
  std::mt19937_64 random_{support::number_of("BLOOMERY_SEED", 1)};
};

TEST_F(LineEndsTest, NoErrorHoldsOne) {
  const WordList all = names();
  ASSERT_GT(all.size(), 200U);
  for (uint64_t round = 0; round < rounds_ * support::rounds(10, 2); ++round) {
    WordList words;
    std::string name = all[random_() % all.size()];
    if (const size_t bar = name.find('|'); bar != std::string::npos) {
      words.push_back(name.substr(0, bar));
      name.erase(0, bar + 1);
    }
    words.push_back(random_() % 5 == 0 ? any_word() : name);
    for (size_t i = random_() % 5; i > 0; --i) words.push_back(any_word());
    if (words.size() == 1 && is_left_out(words[0])) continue;
    expect_one_reply(run(words), words);
    if (client_->session->transaction.active) run({"DISCARD"});
  }
}

TEST_F(LineEndsTest, UnknownNameGivesOneLineError) {
  EXPECT_EQ(run({"no\r\nsuch", "a\nb"}), error(protocol::unknown_command("no  such", "'a b' ")));
}

// CVE-2022-36021, CVE-2024-31228: matching a key or channel with any pattern must take little time.
class PatternsTest : public CommandTest {
 protected:
  PatternsTest() {
    run({"SET", name_, "1"});
    const auto repeated = [](const std::string& part, size_t count) {
      std::string text;
      for (size_t i = 0; i < count; ++i) text += part;
      return text;
    };
    patterns_ = {repeated("a*", 500) + "b",       std::string(100'000, '*') + "b",
                 std::string(1'000'000, '?'),     repeated("[a-z]*", 500) + "0",
                 repeated("*a", 5'000) + "b",     repeated("\\a*", 1000) + "b",
                 "[" + std::string(500'000, 'a'), repeated("*?", 50'000)};
  }
  // Runs the command up to three times. Expects that the fastest run is within the time limit,
  // because a busy machine may slow the other runs.
  void expect_short(const WordList& words) {
    using Clock = std::chrono::steady_clock;
    auto best = Clock::duration::max();
    for (int i = 0; i < 3 && best > kLimit; ++i) {
      const auto start = Clock::now();
      run(words);
      best = std::min(best, Clock::now() - start);
    }
    EXPECT_LT(best, kLimit) << words[0] << ' ' << words[1].substr(0, 30);
  }

#ifdef NDEBUG
  static constexpr std::chrono::milliseconds kLimit{support::rounds(100, 5'000)};
#else
  static constexpr std::chrono::milliseconds kLimit{5'000};
#endif
  const std::string name_ = std::string(10'000, 'a');
  WordList patterns_;
};

TEST_F(PatternsTest, QuestionsAboutKeysAreShort) {
  for (const std::string& pattern : patterns_) {
    expect_short({"KEYS", pattern});
    expect_short({"SCAN", "0", "MATCH", pattern, "COUNT", "1000"});
  }
}

TEST_F(PatternsTest, QuestionsAboutTheServerAreShort) {
  for (const std::string& pattern : patterns_) {
    expect_short({"CONFIG", "GET", pattern});
    expect_short({"PUBSUB", "CHANNELS", pattern});
    expect_short({"COMMAND", "LIST", "FILTERBY", "PATTERN", pattern});
  }
}

TEST_F(PatternsTest, RightsToKeysAreJudgedInShortTime) {
  for (const std::string& pattern : patterns_) {
    expect_short({"ACL", "SETUSER", "u", "+get", "~" + pattern});
    expect_short({"ACL", "DRYRUN", "u", "GET", name_});
  }
}

TEST_F(PatternsTest, AMessageIsMatchedInShortTime) {
  for (const std::string& pattern : patterns_) run_as_other({"PSUBSCRIBE", pattern});
  expect_short({"PUBLISH", name_, "m"});
}

// Tests that passwords are hidden from other users.
class SecretsTest : public net::ClientsFixture {
 protected:
  SecretsTest() {
    run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
    for (const char* const line :
         {"AUTH hunter2", "AUTH default hunter2", "AUTH x hunter2", "HELLO 3 AUTH default hunter2",
          "HELLO 3 AUTH x hunter2", "HELLO 2", "CONFIG SET masterauth hunter2",
          "config set masteruser hunter2", "CONFIG SET hz 10 masterauth hunter2",
          "CONFIG SET requirepass hunter2 nosuch 1", "ACL SETUSER u >hunter2", "MULTI",
          "AUTH hunter2", "EXEC", "MIGRATE h 1 k 0 1 AUTH hunter2",
          "CONFIG SET requirepass hunter2"}) {
      run(net::words_in(line));
    }
  }
  ~SecretsTest() override { log_.reset(); }

  std::unique_ptr<CapturedLog> log_ = std::make_unique<CapturedLog>();
  Remote& monitor_ = connect({"MONITOR"});
};

TEST_F(SecretsTest, CommandsThatLookBackHideThem) {
  for (const char* const line :
       {"SLOWLOG GET 128", "INFO everything", "CLIENT LIST", "CLIENT INFO", "MEMORY STATS",
        "LATENCY LATEST", "ACL LIST", "ACL GETUSER u", "ACL LOG", "COMMAND GETKEYS GET k"}) {
    const std::string reply = run(net::words_in(line));
    EXPECT_THAT(reply, testing::Not(StartsWith("-"))) << line;
    EXPECT_EQ(reply.find("hunter2"), std::string::npos) << line;
  }
}

TEST_F(SecretsTest, MonitorsDoNotSeeThem) {
  run({"ECHO", "the-end"});
  const std::string seen = monitor_.replies();
  EXPECT_NE(seen.find("the-end"), std::string::npos);
  EXPECT_NE(seen.find("\"AUTH\" \"(redacted)\""), std::string::npos);
  EXPECT_EQ(seen.find("hunter2"), std::string::npos) << seen;
}

TEST_F(SecretsTest, TheLogDoesNotTellThem) {
  EXPECT_EQ(log_->text().find("hunter2"), std::string::npos) << log_->text();
}

}  // namespace
}  // namespace server
