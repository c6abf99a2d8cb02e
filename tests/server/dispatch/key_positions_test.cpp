// SPDX-License-Identifier: MIT
//
// Checks that the keys named by a row of the command table are the keys that its command touches.
// The test finds the touched keys by the command's behaviour alone. A word of a command is a
// touched key if the command changes the value under that name. It is also a touched key if its
// value changes the reply or another key. A user without rights to such a word must be rejected.
//
// A command without a sample is called with made-up arguments: words for keys, and numbers for all
// other arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::IsEmpty;
using WordList = std::vector<std::string>;

// One way to call a command. The words of the command differ from each other, so that each word
// identifies one argument.
struct Sample {
  WordList command;
  std::vector<WordList> before{};  // commands that must run first, to create keys
};

// Placeholders in a sample. spelled() replaces them by the reply of DUMP or by a chunk of
// BF.SCANDUMP.
const std::string kDump = "<DUMP>";
const std::string kChunk = "<CHUNK>";

const WordList kText = {"SET", "k", "12"};
const WordList kOther = {"SET", "l", "13"};
const WordList kFilter = {"BF.ADD", "k", "item"};
const WordList kOtherFilter = {"BF.ADD", "l", "thing"};

const std::vector<Sample> kStringSamples = {
    {{"GET", "k"}, {kText}},
    {{"SET", "k", "v"}, {kText}},
    {{"SET", "k", "v", "GET"}, {kText}},
    {{"SET", "k", "v", "IFEQ", "12"}, {kText}},
    {{"SET", "k", "v", "NX", "EX", "100"}},
    {{"GETSET", "k", "v"}, {kText}},
    {{"GETDEL", "k"}, {kText}},
    {{"GETEX", "k", "PERSIST"}, {kText}},
    {{"SETNX", "k", "v"}},
    {{"SETEX", "k", "100", "v"}, {kText}},
    {{"PSETEX", "k", "100", "v"}, {kText}},
    {{"MGET", "k", "l", "m"}, {kText, kOther}},
    {{"MSET", "k", "v", "l", "w"}, {kText}},
    {{"MSETNX", "k", "v", "l", "w"}},
    {{"MSETEX", "2", "k", "v", "l", "w", "XX"}, {kText, kOther}},
    {{"DELEX", "k"}, {kText}},
    {{"DELEX", "k", "IFEQ", "12"}, {kText}},
    {{"DIGEST", "k"}, {kText}},
    {{"APPEND", "k", "v"}, {kText}},
    {{"STRLEN", "k"}, {kText}},
    {{"GETRANGE", "k", "0", "9"}, {kText}},
    {{"SETRANGE", "k", "1", "v"}, {kText}},
    {{"SUBSTR", "k", "0", "9"}, {kText}},
    {{"INCR", "k"}, {kText}},
    {{"DECR", "k"}, {kText}},
    {{"INCRBY", "k", "3"}, {kText}},
    {{"DECRBY", "k", "3"}, {kText}},
    {{"INCRBYFLOAT", "k", "0.5"}, {kText}},
    {{"LCS", "k", "l"}, {kText, kOther}},
    {{"SETBIT", "k", "9", "1"}, {kText}},
    {{"GETBIT", "k", "2"}, {kText}},
    {{"BITCOUNT", "k"}, {kText}},
    {{"BITPOS", "k", "1"}, {kText}},
    {{"BITOP", "OR", "k", "l", "m"}, {kText, kOther, {"SET", "m", "ab"}}},
    {{"BITOP", "NOT", "k", "l"}, {kText, kOther}},
    {{"BITFIELD", "k", "INCRBY", "u8", "0", "1"}, {kText}},
    {{"BITFIELD", "k", "GET", "u8", "0"}, {kText}},
    {{"BITFIELD_RO", "k", "GET", "u8", "0"}, {kText}},
};
const std::vector<Sample> kFilterSamples = {
    {{"BF.RESERVE", "k", "0.01", "100"}},
    {{"BF.ADD", "k", "new"}, {kFilter}},
    {{"BF.MADD", "k", "new", "newer"}, {kFilter}},
    {{"BF.INSERT", "k", "ITEMS", "new", "newer"}, {kFilter}},
    {{"BF.EXISTS", "k", "item"}, {kFilter}},
    {{"BF.MEXISTS", "k", "item", "another"}, {kFilter}},
    {{"BF.INFO", "k"}, {kFilter}},
    {{"BF.CARD", "k"}, {kFilter}},
    {{"BF.SCANDUMP", "k", "0"}, {kFilter}},
    {{"BF.LOADCHUNK", "k", "1", kChunk}},
    {{"BF.LOAD", "k", kDump}},
    {{"BF.DEBUG", "k"}, {kFilter}},
    {{"BF.STATS", "k"}, {kFilter}},
    {{"BF.KEXISTS", "2", "k", "l", "item", "thing"}, {kFilter, kOtherFilter}},
    {{"BF.KADD", "2", "k", "l", "new", "newer"}, {kFilter, kOtherFilter}},
    {{"BF.MERGE", "k", "l", "m"}, {kFilter, kOtherFilter, {"BF.ADD", "m", "more"}}},
    {{"BF.MERGE", "k", "l", "FORCE"}, {kFilter, kOtherFilter}},
    {{"BF.CLEAR", "k"}, {kFilter}},
    {{"BF.DEL", "k", "item"},
     {{"BF.RESERVE", "k", "0.01", "100", "DELETABLE"}, {"BF.ADD", "k", "item"}}},
    {{"BF.TURN", "k", "1", "1700000000"},
     {{"BF.RESERVE", "k", "0.01", "100", "WINDOW", "60"}, {"BF.ADD", "k", "item"}}},
};
const std::vector<Sample> kAnyType = {
    {{"COPY", "k", "l"}, {kText}},
    {{"COPY", "k", "l", "REPLACE"}, {kText, kOther}},
    {{"DEL", "k", "l"}, {kText, kOther}},
    {{"EXISTS", "k", "l"}, {kText}},
    {{"MOVE", "k", "1"}, {kText}},
    {{"RENAME", "k", "l"}, {kText}},
    {{"RENAMENX", "k", "l"}, {kText}},
    {{"TOUCH", "k", "l"}, {kText}},
    {{"TYPE", "k"}, {kText}},
    {{"UNLINK", "k", "l"}, {kText, kOther}},
    {{"DUMP", "k"}, {kText}},
    {{"RESTORE", "k", "0", kDump}},
    {{"EXPIRE", "k", "100"}, {kText}},
    {{"EXPIREAT", "k", "1800000000"}, {kText}},
    {{"EXPIRETIME", "k"}, {{"SET", "k", "12", "EX", "50"}}},
    {{"PERSIST", "k"}, {{"SET", "k", "12", "EX", "50"}}},
    {{"PEXPIRE", "k", "100"}, {kText}},
    {{"PEXPIREAT", "k", "1800000000000"}, {kText}},
    {{"PEXPIRETIME", "k"}, {{"SET", "k", "12", "EX", "50"}}},
    {{"PTTL", "k"}, {{"SET", "k", "12", "EX", "50"}}},
    {{"TTL", "k"}, {{"SET", "k", "12", "EX", "50"}}},
    {{"OBJECT", "ENCODING", "k"}, {kText}},
    {{"OBJECT", "FREQ", "k"}, {kText}},
    {{"OBJECT", "IDLETIME", "k"}, {kText}},
    {{"OBJECT", "REFCOUNT", "k"}, {kText}},
    {{"MEMORY", "USAGE", "k"}, {kText}},
    {{"MEMORY", "USAGE", "k", "SAMPLES", "0"}, {kText}},
    {{"WATCH", "k", "l"}, {kText}},
    // The table rows of SPUBLISH, SSUBSCRIBE and SUNSUBSCRIBE give the positions of channels, which
    // are not keys.
    {{"SPUBLISH", "k", "message"}, {kText}},
    {{"SSUBSCRIBE", "k"}, {kText}},
    {{"SUNSUBSCRIBE", "k"}, {kText}},
};

// Commands that read or write data, but whose arguments name no keys.
const std::set<std::string> kNameless = {
    "keys",   "randomkey", "scan",    "dbsize",  "flushall",       "flushdb",
    "swapdb", "lolwut",    "bf.scan", "bf.plan", "debug|populate", "function|flush"};

// Returns a sample that calls a command with the fewest arguments. Arguments that are keys get
// names such as "key1", all others are numbers.
Sample made_up(const RegisteredCommand& command) {
  const Command& row = *command.row;
  Sample sample{{}, {kText}};
  std::string name = command.full_name;
  if (const size_t bar = name.find('|'); bar != std::string::npos) {
    sample.command.push_back(name.substr(0, bar));
    name.erase(0, bar + 1);
  }
  sample.command.push_back(name);
  const int word_count = std::abs(row.arity);
  for (int i = static_cast<int>(sample.command.size()); i < word_count; ++i) {
    const bool is_key = std::ranges::any_of(row.keys, [=](const KeyRange& keys) {
      const int last = keys.last < 0 ? word_count + keys.last : keys.last;
      return keys.first > 0 && i >= keys.first && i <= last && (i - keys.first) % keys.step == 0;
    });
    sample.command.push_back((is_key ? "key" : "") + std::to_string(i));
  }
  return sample;
}

// The value that the tested key has before the command runs: no value, a number, other bytes, a
// Bloom filter, or the value from Sample::before.
enum class Variant { kAbsent, kNumber, kBytes, kSeen, kAsMade };

class KeyPositionsTest : public CommandTest {
 protected:
  std::string payload(const WordList& command, size_t skipped_lines) {
    std::string reply = run_as_other(command);
    for (size_t i = 0; i < skipped_lines; ++i) reply.erase(0, reply.find('\n') + 1);
    return reply.substr(0, reply.size() - 2);
  }

  // Returns the sample's command after its placeholders <DUMP> and <CHUNK> were replaced by replies
  // of the server.
  WordList spelled(const Sample& sample) {
    EXPECT_EQ(run_as_other({"FLUSHALL"}), kOk);
    run_as_other({"BF.ADD", "k", "loaded"});
    const std::string chunk = payload({"BF.SCANDUMP", "k", "0"}, 3);
    const std::string dump = payload({"DUMP", "k"}, 1);
    WordList words = sample.command;
    for (std::string& word : words) {
      if (word == kChunk) word = chunk;
      if (word == kDump) word = dump;
    }
    return words;
  }

  std::string state_of(const std::string& name) {
    return run_as_other({"DUMP", name}) + run_as_other({"PTTL", name});
  }

  struct Effect {
    bool has_changed = false;  // true if the command changes the value of the tested key
    std::string rest;          // the reply, and the values of the other keys after the command
  };

  // Creates the keys of the sample and gives the key `name` the value that `variant` describes.
  // Runs the command and returns its effect.
  Effect run_with(const Sample& sample, const WordList& words, const std::string& name,
                  Variant variant) {
    EXPECT_EQ(run_as_other({"FLUSHALL"}), kOk);
    for (const WordList& made : sample.before) run_as_other(made);
    if (variant != Variant::kAsMade) run_as_other({"DEL", name});
    if (variant == Variant::kNumber) run_as_other({"SET", name, "4711", "EX", "70"});
    if (variant == Variant::kBytes) run_as_other({"SET", name, "z\xff"});
    if (variant == Variant::kSeen) run_as_other({"BF.ADD", name, "unheard"});
    Effect effect;
    const std::string before = state_of(name);
    const bool is_for_journals = words[0] == "BF.TURN";
    if (is_for_journals) client_->session->origin = CommandOrigin::kOwnJournal;
    effect.rest = run(words);
    client_->session->origin = CommandOrigin::kClient;
    effect.has_changed = state_of(name) != before;
    for (const std::string& word : words) {
      if (word != name) effect.rest += state_of(word);
    }
    // WATCH has an effect only on a later transaction, which fails if the watched key has changed.
    if (run({"MULTI"}) == kOk) {
      run_as_other({"SET", name, "a change"});
      effect.has_changed |= run({"EXEC"}) == "*-1\r\n";
    }
    run({"RESET"});
    return effect;
  }

  bool touches(const Sample& sample, const WordList& words, const std::string& name) {
    std::set<std::string> rests;
    for (const Variant variant :
         {Variant::kAbsent, Variant::kNumber, Variant::kBytes, Variant::kSeen, Variant::kAsMade}) {
      const Effect effect = run_with(sample, words, name, variant);
      if (effect.has_changed) return true;
      rests.insert(effect.rest);
    }
    return rests.size() > 1;
  }

  // Returns whether the permission check rejects the command for a user with limited keys. The user
  // may access every word of the command as a key, except `name`.
  bool needs(const RegisteredCommand& command, const WordList& words, const std::string& name) {
    acl::User user("u", users_.table(), acl::ChannelDefault::kAllChannels);
    const std::vector<std::string_view> all_commands = {"+@all"};
    EXPECT_FALSE(user.apply_all(all_commands));
    for (const std::string& word : words) {
      // A pattern of an ACL rule cannot contain zero bytes, so the pattern for a payload consists
      // of one `?` for each byte.
      const bool is_payload = word.size() > 20;
      const std::string pattern = is_payload ? std::string(word.size(), '?') : word;
      if (word == name) continue;
      EXPECT_TRUE(user.apply("~" + pattern));
    }
    const std::vector<std::string_view> args(words.begin(), words.end());
    return denial_of(user, command, args).has_value();
  }

  const RegisteredCommand& command_of(const WordList& words) {
    const std::vector<std::string_view> args(words.begin(), words.end());
    return *registry_->find(args);
  }

  // Returns samples of all commands that name keys or access data. Commands in kNameless are left
  // out.
  std::vector<Sample> samples() {
    std::vector<Sample> all = kStringSamples;
    all.insert(all.end(), kFilterSamples.begin(), kFilterSamples.end());
    all.insert(all.end(), kAnyType.begin(), kAnyType.end());
    std::set<std::string> sampled;
    for (const Sample& sample : all) sampled.insert(command_of(sample.command).full_name);
    for (size_t i = 0; i < registry_->size(); ++i) {
      const RegisteredCommand& command = registry_->at(i);
      const bool is_on_data = (command.row->flags & (kWrite | kReadOnly)) != 0;
      if (command.row->keys[0].first == 0 && !is_on_data) continue;
      const bool is_nameless = kNameless.contains(command.full_name);
      EXPECT_FALSE(is_nameless && sampled.contains(command.full_name)) << command.full_name;
      if (!is_nameless && !sampled.contains(command.full_name)) all.push_back(made_up(command));
    }
    return all;
  }

  // Returns the words that the command table lists as keys although the command does not touch
  // them. Also returns the words that the command touches although the table does not list them.
  WordList disagreements(const Sample& sample) {
    WordList found;
    const WordList words = spelled(sample);
    const RegisteredCommand& command = command_of(words);
    EXPECT_TRUE(command.arity_fits(words.size())) << command.full_name;
    for (size_t i = command.container == nullptr ? 1 : 2; i < words.size(); ++i) {
      if (needs(command, words, words[i]) != touches(sample, words, words[i])) {
        found.push_back(sample.command[i]);
      }
    }
    return found;
  }
};

TEST_F(KeyPositionsTest, AUserNeedsTheKeysThatTheCommandTouches) {
  for (const Sample& sample : samples()) {
    EXPECT_THAT(disagreements(sample), IsEmpty())
        << command_of(sample.command).full_name
        << ": its row is wrong, or it wants a sample of other words above";
  }
}

TEST_F(KeyPositionsTest, MadeUpWordsSufficeForMostRows) {
  for (const char* name : {"get", "append", "setrange", "expire", "bf.add", "bf.card", "del"}) {
    const Sample sample = made_up(*registry_->find(std::vector<std::string_view>{name}));
    EXPECT_THAT(disagreements(sample), IsEmpty()) << name;
  }
  // Checks the generated arguments of a subcommand, and of a command whose arguments alternate
  // between keys and values.
  EXPECT_EQ(made_up(command_of({"MEMORY", "USAGE", "k"})).command,
            (WordList{"memory", "usage", "key2"}));
  EXPECT_EQ(made_up(command_of({"MSET", "k", "v"})).command, (WordList{"mset", "key1", "2"}));
}

// Checks that a wrong key position in a table row is detected.
TEST_F(KeyPositionsTest, AWrongPositionIsSeen) {
  const Sample sample{{"SETRANGE", "k", "1", "v"}, {kText}};
  for (const int position : {1, 2, 3}) {
    Command row = *command_of(sample.command).row;
    row.keys[0].first = row.keys[0].last = position;
    RegisteredCommand command = command_of(sample.command);
    command.row = &row;
    bool is_same = true;
    for (size_t i = 1; i < sample.command.size(); ++i) {
      const std::string& name = sample.command[i];
      is_same &= needs(command, sample.command, name) == touches(sample, sample.command, name);
    }
    EXPECT_EQ(is_same, position == 1) << position;
  }
}

}  // namespace
}  // namespace server
