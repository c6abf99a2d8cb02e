// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/dispatch/admission.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class BloomMergeCommandsTest : public CommandTest {
 protected:
  void add(const std::string& key, const std::string& prefix, int count) {
    std::vector<std::string> command{"BF.MADD", key};
    for (int i = 0; i < count; ++i) command.push_back(prefix + std::to_string(i));
    run(command);
  }
  void reserve(const std::string& key, const std::string& capacity = "1000",
               const std::string& layout = "NATIVE") {
    EXPECT_EQ(run({"BF.RESERVE", key, "0.01", capacity, "LAYOUT", layout}), kOk);
  }
  int missing(const std::string& key, const std::string& prefix, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) {
      sum += run({"BF.EXISTS", key, prefix + std::to_string(i)}) != integer(1);
    }
    return sum;
  }
  int64_t card(const std::string& key) { return std::stoll(run({"BF.CARD", key}).substr(1)); }
  bool is_marked(const std::string& key) {
    return run({"BF.STATS", key}).find("items are estimated") != std::string::npos;
  }
  std::string digest(const std::string& key) { return run({"DEBUG", "DIGEST-VALUE", key}); }
  const core::bloom::ScalableFilter& filter(const std::string& key) {
    return keyspace_.find_any(0, keyspace_.ref(key))->filter();
  }
  void configure(const std::string& name, const std::string& value) {
    const std::vector<NamedValue> pairs{{name, value}};
    ASSERT_TRUE(config_.set(pairs)) << name;
  }
};

TEST_F(BloomMergeCommandsTest, AMissingDestinationBecomesTheUnion) {
  reserve("a");
  reserve("b");
  add("a", "a", 200);
  add("b", "b", 300);
  EXPECT_EQ(run({"BF.MERGE", "all", "a", "b"}), kOk);
  EXPECT_EQ(missing("all", "a", 200) + missing("all", "b", 300), 0);
  EXPECT_NEAR(double(card("all")), 500, 15);
  EXPECT_TRUE(is_marked("all"));
  EXPECT_FALSE(is_marked("a"));
  EXPECT_EQ(run({"BF.INFO", "all", "CAPACITY"}), array({integer(1000)}));
  EXPECT_EQ(card("b"), 300);
}

TEST_F(BloomMergeCommandsTest, MergeIncludesDestinationAndKeepsItsExpiry) {
  reserve("a");
  reserve("b");
  add("a", "a", 200);
  add("b", "b", 300);
  run({"PEXPIRE", "a", "5000"});
  run({"PEXPIRE", "b", "9000"});
  EXPECT_EQ(run({"BF.MERGE", "a", "b"}), kOk);
  EXPECT_EQ(missing("a", "a", 200) + missing("a", "b", 300), 0);
  EXPECT_EQ(run({"PTTL", "a"}), integer(5000));
  EXPECT_EQ(run({"BF.MERGE", "new", "b"}), kOk);
  EXPECT_EQ(run({"PTTL", "new"}), integer(-1));
  EXPECT_EQ(digest("new"), digest("b"));
  EXPECT_EQ(keyspace_.expires_count(0), 2U);
  advance_ms(5001);
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
  EXPECT_EQ(run({"DEL", "a"}), integer(0));
  EXPECT_EQ(keyspace_.expires_count(0), 1U);
}

TEST_F(BloomMergeCommandsTest, MissingSourcesAreNamedInAnError) {
  reserve("a");
  add("a", "a", 200);
  const std::string before = digest("a");
  const auto missing = is_error("ERR", "'none'");
  EXPECT_THAT(run({"BF.MERGE", "a", "none", "nor-this"}), missing);
  EXPECT_THAT(run({"BF.MERGE", "new", "a", "none"}), missing);
  EXPECT_THAT(run({"BF.MERGE", "other", "none"}), missing);
  EXPECT_THAT(run({"BF.MERGE", "other", "a\r\nb"}), is_error("ERR", "'a\\r\\nb'"));
  EXPECT_EQ(run({"EXISTS", "new", "other"}), integer(0));
  EXPECT_EQ(digest("a"), before);
  // If BF.MERGE names a source twice, the source counts only once.
  EXPECT_EQ(run({"BF.MERGE", "a", "a", "a"}), kOk);
  EXPECT_EQ(digest("a"), before);
  EXPECT_EQ(run({"BF.MERGE", "new", "a", "a"}), kOk);
  EXPECT_EQ(digest("new"), before);
  run({"SET", "string", "x"});
  EXPECT_EQ(run({"BF.MERGE", "string", "a"}), error(kWrongType));
  EXPECT_EQ(run({"BF.MERGE", "a", "none", "string"}), error(kWrongType));
  // BF.MERGE treats an expired source key as missing.
  run({"PEXPIRE", "a", "10"});
  advance_ms(11);
  EXPECT_THAT(run({"BF.MERGE", "other", "a"}), is_error("ERR", "'a'"));
}

TEST_F(BloomMergeCommandsTest, RefusesWithTheReasonAndChangesNothing) {
  reserve("a");
  reserve("b");
  add("a", "a", 900);
  add("b", "b", 900);
  const std::string before = digest("a");
  const uint64_t changes = state_.changes.load();
  const std::string refusal = run({"BF.MERGE", "a", "b"});
  EXPECT_THAT(refusal, is_error("ERR", "error rate: layer 0"));
  EXPECT_EQ(digest("a"), before);
  EXPECT_EQ(state_.changes.load(), changes);
  EXPECT_EQ(run({"BF.MERGE", "new", "a", "b"}), refusal);
  EXPECT_EQ(run({"EXISTS", "new"}), integer(0));
  EXPECT_EQ(run({"BF.MERGE", "new", "a", "b", "force"}), kOk);
  EXPECT_EQ(missing("new", "a", 900) + missing("new", "b", 900), 0);
  EXPECT_NEAR(double(card("new")), 1800, 60);
  reserve("r", "1000", "REDISBLOOM");
  EXPECT_THAT(run({"BF.MERGE", "a", "r", "FORCE"}), is_error("ERR", "layouts differ"));
}

TEST_F(BloomMergeCommandsTest, ForceIsAKeyWhereASourceIsNeeded) {
  reserve("FORCE");
  add("FORCE", "f", 10);
  EXPECT_EQ(run({"BF.MERGE", "new", "FORCE"}), kOk);
  EXPECT_EQ(missing("new", "f", 10), 0);
  EXPECT_EQ(run({"BF.MERGE", "new2", "FORCE", "FORCE"}), kOk);
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "BF.MERGE", "d", "s", "t", "FORCE"}),
            array({bulk("d"), bulk("s"), bulk("t")}));
  EXPECT_EQ(run({"BF.MERGE", "new"}), error(protocol::wrong_arity("bf.merge")));
}

TEST_F(BloomMergeCommandsTest, LimitsAreAskedBeforeAnythingChanges) {
  reserve("a", "100");
  reserve("b", "100");
  add("a", "a", 50);
  add("b", "b", 3000);
  configure("bf.bloom-memory-usage-limit", "1kb");
  EXPECT_EQ(run({"BF.MERGE", "a", "b", "FORCE"}), error(kFilterTooLarge));
  EXPECT_EQ(card("a"), 50);
  configure("bf.bloom-memory-usage-limit", "0");
  EXPECT_EQ(run({"BF.MERGE", "a", "b", "FORCE"}), kOk);
  EXPECT_EQ(filter("a").layer_count(), filter("b").layer_count());
}

TEST_F(BloomMergeCommandsTest, ClearEmptiesInPlace) {
  for (const std::string layout : {"NATIVE", "REDISBLOOM", "VALKEY-BLOOM"}) {
    const std::string key = "k" + layout;
    EXPECT_EQ(run({"BF.RESERVE", key, "0.001", "50", "EXPANSION", "4", "LAYOUT", layout}), kOk);
    const std::string empty = digest(key);
    add(key, "a", 1000);
    ASSERT_GT(filter(key).layer_count(), 1U);
    run({"PEXPIRE", key, "5000"});
    EXPECT_EQ(run({"BF.CLEAR", key}), kOk);
    EXPECT_EQ(digest(key), empty) << layout;
    EXPECT_EQ(run({"PTTL", key}), integer(5000));
    EXPECT_EQ(card(key), 0);
    EXPECT_EQ(missing(key, "a", 1000), 1000);
    add(key, "a", 1000);
    EXPECT_EQ(missing(key, "a", 1000), 0);
  }
  EXPECT_EQ(run({"BF.CLEAR", "none"}), error(kFilterNotFound));
  run({"SET", "string", "x"});
  EXPECT_EQ(run({"BF.CLEAR", "string"}), error(kWrongType));
}

TEST_F(BloomMergeCommandsTest, DeletableFiltersAreClearedButNotMerged) {
  const std::vector<std::vector<std::string>> kinds = {{"DELETABLE"},
                                                       {"DELETABLE", "REGIONS", "10"}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string key = "d" + std::to_string(i);
    for (const std::string& name : {key, key + "-other"}) {
      std::vector<std::string> command{"BF.RESERVE", name, "0.01", "100"};
      command.insert(command.end(), kinds[i].begin(), kinds[i].end());
      ASSERT_EQ(run(command), kOk);
    }
    const std::string empty = digest(key);
    add(key, "a", 90);
    EXPECT_THAT(run({"BF.MERGE", key, key + "-other"}), is_error("ERR", "deletable filters"));
    EXPECT_EQ(run({"BF.CLEAR", key}), kOk);
    EXPECT_EQ(digest(key), empty);
    EXPECT_EQ(run({"BF.ADD", key, "x"}), integer(1));
    EXPECT_EQ(run({"BF.DEL", key, "x"}), array({integer(1)}));
  }
}

TEST_F(BloomMergeCommandsTest, AClearedWindowForgetsAndGoesOn) {
  run({"BF.RESERVE", "w", "0.01", "1000", "WINDOW", "100"});
  reserve("plain");
  add("w", "a", 50);
  advance_ms(30'000);
  add("w", "b", 50);
  const auto reason = is_error("ERR", "window");
  EXPECT_THAT(run({"BF.MERGE", "plain", "w"}), reason);
  EXPECT_THAT(run({"BF.MERGE", "w", "plain", "FORCE"}), reason);
  EXPECT_EQ(run({"BF.CLEAR", "w"}), kOk);
  EXPECT_EQ(card("w"), 0);
  EXPECT_EQ(missing("w", "b", 50), 50);
  add("w", "c", 50);
  advance_ms(90'000);
  EXPECT_EQ(missing("w", "c", 50), 0);
  advance_ms(60'000);
  EXPECT_EQ(missing("w", "c", 50), 50);
}

TEST_F(BloomMergeCommandsTest, ClearWorksAboveTheMemoryLimit) {
  // The filter's array is big enough to be mapped. Mapped arrays count as used memory even if the
  // server is built with a sanitizer's allocator.
  run({"BF.RESERVE", "big", "0.01", "2000000"});
  reserve("a");
  add("a", "a", 100);
  memory_.set_limit(1);
  EXPECT_EQ(run({"BF.ADD", "a", "x"}), error(kOutOfMemory));
  EXPECT_EQ(run({"BF.MERGE", "b", "a"}), error(kOutOfMemory));
  EXPECT_EQ(run({"BF.CLEAR", "a"}), kOk);
  EXPECT_EQ(card("a"), 0);
}

TEST_F(BloomMergeCommandsTest, WatchersNoticeBothCommands) {
  reserve("a");
  reserve("b");
  add("b", "b", 10);
  for (const std::vector<std::string>& change :
       {std::vector<std::string>{"BF.MERGE", "a", "b"}, {"BF.CLEAR", "a"}}) {
    run_as_other({"WATCH", "a"});
    run_as_other({"MULTI"});
    run_as_other({"PING"});
    run(change);
    EXPECT_EQ(run_as_other({"EXEC"}), "*-1\r\n") << change[0];
  }
}

TEST_F(BloomMergeCommandsTest, BothWorkInATransaction) {
  reserve("a");
  reserve("b");
  add("b", "b", 10);
  run({"MULTI"});
  run({"BF.MERGE", "a", "b"});
  run({"BF.CLEAR", "b"});
  run({"BF.MERGE", "c", "a", "b", "FORCE"});
  EXPECT_EQ(run({"EXEC"}), array({kOk, kOk, kOk}));
  EXPECT_EQ(missing("a", "b", 10) + missing("c", "b", 10), 0);
  EXPECT_EQ(card("b"), 0);
}

template <class Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Returns a payload of BF.LOAD that creates an empty filter of the valkey-bloom layout.
std::string valkey_payload(uint32_t expansion, double tightening_ratio) {
  constexpr uint64_t kArrayBytes = 120;
  std::string blob;
  append_number(blob, uint8_t{1});
  append_number(blob, kArrayBytes);
  append_number(blob, uint32_t{7});  // number of hashes
  blob.append(32, 's');              // seed of the hash
  blob.append(kArrayBytes, '\0');
  std::string bytes;
  append_number(bytes, uint8_t{1});
  append_number(bytes, expansion);
  append_number(bytes, 0.01);
  append_number(bytes, tightening_ratio);
  append_number(bytes, uint8_t{1});
  append_number(bytes, uint64_t{1});  // number of layers
  append_number(bytes, uint64_t{blob.size()});
  bytes += blob;
  append_number(bytes, int64_t{0});  // number of items
  append_number(bytes, int64_t{100});
  return bytes;
}

// A loaded filter may have settings that BF.RESERVE rejects, for example an expansion of 100,000.
TEST_F(BloomMergeCommandsTest, AClearedLoadedFilterIsReplayedAlike) {
  other_->session->origin = CommandOrigin::kOwnJournal;
  other_->session->client->database = 1;
  for (const auto& [expansion, ratio] : {std::pair{2U, 0.5}, {100'000U, 0.5}, {0U, 0.8}}) {
    SCOPED_TRACE(std::to_string(expansion) + " " + std::to_string(ratio));
    run({"FLUSHALL"});
    const std::string payload = valkey_payload(expansion, ratio);
    ASSERT_EQ(run({"BF.LOAD", "k", payload}), kOk);
    ASSERT_EQ(run_as_other({"BF.LOAD", "k", payload}), kOk);
    std::string journalled;
    journal_.take(journalled);
    ASSERT_EQ(run({"BF.CLEAR", "k"}), kOk);
    journalled.clear();
    journal_.take(journalled);
    const bool is_verbatim = journalled.find("BF.CLEAR") != std::string::npos;
    EXPECT_EQ(is_verbatim, expansion != 2) << journalled;
    if (is_verbatim) {
      EXPECT_EQ(run_as_other({"BF.CLEAR", "k"}), kOk);
    }
    run({"BF.ADD", "k", "x"});
    run_as_other({"BF.ADD", "k", "x"});
    EXPECT_EQ(run_as_other({"DEBUG", "DIGEST-VALUE", "k"}), digest("k"));
  }
}

// Replays a journal whose merges were accepted under other memory limits. The filters must get the
// same bits.
TEST_F(BloomMergeCommandsTest, AJournalRepeatsThemToTheSameBits) {
  const std::vector<std::vector<std::string>> commands = {
      {"BF.RESERVE", "a", "0.01", "100", "EXPANSION", "2", "LAYOUT", "native"},
      {"BF.RESERVE", "b", "0.01", "100", "EXPANSION", "2", "LAYOUT", "native"},
      {"BF.MADD", "a", "1", "2", "3"},
      {"BF.MADD", "b", "4", "5"},
      {"BF.MERGE", "a", "b"},
      {"BF.ADD", "b", "6"},
      {"BF.MERGE", "new", "a", "b", "FORCE"},
      {"BF.CLEAR", "b"},
      {"BF.ADD", "b", "7"},
  };
  other_->session->origin = CommandOrigin::kOwnJournal;
  other_->session->client->database = 1;
  configure("bf.bloom-memory-usage-limit", "1mb");
  for (const auto& command : commands) {
    run(command);
    run_as_other(command);
  }
  for (const std::string key : {"a", "b", "new"}) {
    const std::string ours = digest(key);
    EXPECT_NE(ours, array({"+0000000000000000000000000000000000000000\r\n"}));
    EXPECT_EQ(run_as_other({"DEBUG", "DIGEST-VALUE", key}), ours) << key;
  }
}

}  // namespace
}  // namespace server
