// SPDX-License-Identifier: MIT
//
// Replays commands as RedisBloom and valkey-bloom journal them. Tests that the replay recreates the
// filters of these modules.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/keyspace.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/dispatch/command_replayer.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

const std::string kForeignSeed(32, 's');

class ForeignJournalTest : public CommandTest {
 protected:
  std::string replay(const std::vector<std::string>& command) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    return std::string(replayer_.execute(words));
  }
  // Returns whether BF.STATS reports `layout` for the filter.
  bool has_layout(const std::string& key, const std::string& layout) {
    return run({"BF.STATS", key}).find("\r\n" + layout + "\r\n") != std::string::npos;
  }

  std::string seed_of(const std::string& key) {
    const auto ref = keyspace_.ref(key);
    const auto lock = keyspace_.lock_shared(ref);
    const auto& seed = keyspace_.find(0, ref, clock_.now_ms)->filter().parameters().seed;
    return {reinterpret_cast<const char*>(seed.data()), seed.size()};
  }

  CommandReplayer replayer_{services_, CommandOrigin::kForeignJournal};
};

TEST_F(ForeignJournalTest, VerbatimCommandsUseRedisBloomsLayout) {
  EXPECT_EQ(replay({"BF.RESERVE", "reserved", "0.01", "100"}), kOk);
  EXPECT_EQ(replay({"BF.ADD", "added", "a"}), integer(1));
  EXPECT_EQ(replay({"BF.INSERT", "inserted", "CAPACITY", "5", "ITEMS", "a"}), array({integer(1)}));
  for (const char* const key : {"reserved", "added", "inserted"}) {
    EXPECT_TRUE(has_layout(key, "redisbloom")) << run({"BF.STATS", key});
  }
  EXPECT_EQ(run({"BF.ADD", "ours", "a"}), integer(1));
  EXPECT_TRUE(has_layout("ours", "native-2"));
}

TEST_F(ForeignJournalTest, SpelledOutCreationIsValkeyBlooms) {
  EXPECT_EQ(replay({"BF.INSERT", "f", "CAPACITY", "100", "ERROR", "0.3", "TIGHTENING", "0.5",
                    "SEED", kForeignSeed, "EXPANSION", "2", "ITEMS", "a"}),
            array({integer(1)}));
  EXPECT_TRUE(has_layout("f", "valkey-bloom")) << run({"BF.STATS", "f"});
}

TEST_F(ForeignJournalTest, AnInsertionWithoutItemsMakesAnEmptyFilter) {
  EXPECT_EQ(replay({"BF.INSERT", "f", "CAPACITY", "100"}), array({}));
  EXPECT_EQ(run({"BF.CARD", "f"}), integer(0));
  EXPECT_EQ(run({"EXISTS", "f"}), integer(1));
}

// The payload is a filter that valkey-bloom has written: the filter `tiny` of tests/vectors.
TEST_F(ForeignJournalTest, LoadThatWasJournalledAsInsertionIsALoad) {
  std::ifstream file(BLOOMERY_VECTORS "/valkey-bloom/load/tiny.bin", std::ios::binary);
  const std::string payload{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(run({"BF.LOAD", "model", payload}), kOk);
  const std::string seed = seed_of("model");
  EXPECT_EQ(replay({"BF.INSERT", "f", "CAPACITY", "100", "ERROR", "0.01", "TIGHTENING", "0.5",
                    "SEED", seed, "EXPANSION", "2", "ITEMS", payload}),
            array({integer(1)}));
  EXPECT_EQ(run({"BF.CARD", "f"}), integer(50));
  EXPECT_EQ(run({"BF.EXISTS", "f", "item:7"}), integer(1));
  // If SEED differs from the seed in the payload, the payload is not loaded as a filter. BF.INSERT
  // adds it as an ordinary item.
  replay({"BF.INSERT", "g", "CAPACITY", "100", "ERROR", "0.01", "TIGHTENING", "0.5", "SEED",
          kForeignSeed, "EXPANSION", "2", "ITEMS", payload});
  EXPECT_EQ(run({"BF.CARD", "g"}), integer(1));
}

TEST_F(ForeignJournalTest, WordsThatRedisBloomPassedOverArePassedOver) {
  EXPECT_EQ(replay({"BF.RESERVE", "f", "0.01", "100", "EXPANSSION", "4"}), kOk);
  EXPECT_NE(run({"BF.RESERVE", "g", "0.01", "100", "EXPANSSION", "4"}), kOk);
}

// RedisBloom recognizes each option of BF.INSERT by some of its letters.
TEST_F(ForeignJournalTest, AbbreviatedOptionsAreUnderstood) {
  EXPECT_EQ(replay({"BF.INSERT", "f", "cap", "50", "er", "0.001", "Exp", "7", "I", "a", "cap"}),
            array({integer(1), integer(1)}));
  EXPECT_EQ(run({"BF.INFO", "f", "CAPACITY"}), array({integer(50)}));
  EXPECT_EQ(run({"BF.INFO", "f", "EXPANSION"}), array({integer(7)}));
  EXPECT_EQ(run({"BF.EXISTS", "f", "cap"}), integer(1));
  EXPECT_EQ(replay({"BF.INSERT", "g", "no", "i", "a"}), array({integer(1)}));
  EXPECT_EQ(run({"BF.INFO", "g", "EXPANSION"}), array({kNull}));
  EXPECT_EQ(replay({"BF.INSERT", "h", "noc", "items", "a"}), error(kFilterNotFound));
  // A value is no option, whatever its letters are.
  EXPECT_EQ(replay({"BF.INSERT", "s", "CAPACITY", "100", "TIGHTENING", "0.5", "SEED",
                    std::string(32, 'i'), "ITEMS", "a"}),
            array({integer(1)}));
  EXPECT_EQ(seed_of("s"), std::string(32, 'i'));
  EXPECT_NE(run({"BF.INSERT", "c", "cap", "50", "ITEMS", "a"}), array({integer(1)}));
}

// RedisBloom accepted every expansion until Redis 8, and valkey-bloom does.
TEST_F(ForeignJournalTest, AnyExpansionIsTaken) {
  EXPECT_EQ(replay({"BF.RESERVE", "r", "0.01", "100", "EXPANSION", "40000"}), kOk);
  EXPECT_EQ(run({"BF.INFO", "r", "EXPANSION"}), array({integer(40'000)}));
  EXPECT_EQ(replay({"BF.INSERT", "v", "CAPACITY", "100", "ERROR", "0.01", "TIGHTENING", "0.5",
                    "SEED", kForeignSeed, "EXPANSION", "4294967295", "ITEMS", "a", "b"}),
            array({integer(1), integer(1)}));
  EXPECT_TRUE(has_layout("v", "valkey-bloom"));
  for (const char* const key : {"r", "v"}) {
    const std::string dumped = run({"DUMP", key});
    const size_t begin = dumped.find('\n') + 1;
    const std::string payload = dumped.substr(begin, dumped.size() - begin - 2);
    EXPECT_EQ(run({"RESTORE", key, "0", payload, "REPLACE"}), kOk) << key;
  }
  EXPECT_NE(replay({"BF.RESERVE", "x", "0.01", "100", "EXPANSION", "4294967296"}), kOk);
  EXPECT_NE(run({"BF.RESERVE", "x", "0.01", "100", "EXPANSION", "40000"}), kOk);
}

TEST_F(ForeignJournalTest, PastExpiryWaitsForTheJournalsOwnWord) {
  EXPECT_EQ(replay({"SET", "k", "v"}), kOk);
  EXPECT_EQ(replay({"PEXPIREAT", "k", "1000"}), integer(1));
  EXPECT_EQ(replay({"APPEND", "k", "w"}), integer(2));
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0)) << "clients see that it has expired";
}

}  // namespace
}  // namespace server
