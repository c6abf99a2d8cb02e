// SPDX-License-Identifier: MIT
//
// Replays commands as RedisBloom and valkey-bloom journal them. Tests that the replay recreates the
// filters of these modules.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/keyspace.h"
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

TEST_F(ForeignJournalTest, PastExpiryWaitsForTheJournalsOwnWord) {
  EXPECT_EQ(replay({"SET", "k", "v"}), kOk);
  EXPECT_EQ(replay({"PEXPIREAT", "k", "1000"}), integer(1));
  EXPECT_EQ(replay({"APPEND", "k", "w"}), integer(2));
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0)) << "clients see that it has expired";
}

}  // namespace
}  // namespace server
