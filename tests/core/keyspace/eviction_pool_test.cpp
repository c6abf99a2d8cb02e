// SPDX-License-Identifier: MIT
#include "core/keyspace/eviction_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/keyspace/key_use.h"

namespace core::keyspace {
namespace {

constexpr uint32_t kNowS = 10'000;

class EvictionPoolTest : public ::testing::Test {
 protected:
  Entry& add(const std::string& name, uint32_t used_at_s = 0, unsigned database = 0) {
    const KeyRef key = keyspace_.ref(name);
    const auto lock = keyspace_.lock_exclusive(key);
    Entry& entry = keyspace_.insert(database, key);
    entry.touch(used_at_s);
    return entry;
  }
  void expire_at(const std::string& name, int64_t at_ms) {
    const KeyRef key = keyspace_.ref(name);
    const auto lock = keyspace_.lock_exclusive(key);
    keyspace_.set_expiry(0, key, *keyspace_.find_any(0, key), at_ms);
  }
  // Chooses a key and deletes it. Returns its name, or "" if the pool finds no key.
  std::string evict(EvictionPolicy policy, size_t sample_size = 5) {
    const EvictionSettings settings{policy, sample_size, kNowS};
    for (;;) {
      const auto choice = pool_.choose(settings, databases_);
      if (!choice.candidate) return "";
      const KeyRef key = keyspace_.ref(choice.candidate->key);
      const auto lock = keyspace_.lock_exclusive(key);
      const Entry* entry = keyspace_.find_any(choice.candidate->database, key);
      if (entry == nullptr || !pool_.is_still_due(*entry, *choice.candidate, settings)) continue;
      (void)keyspace_.erase(choice.candidate->database, key);
      return choice.candidate->key;
    }
  }
  // Evicts 200 of the keys k0 to k999. Returns the mean of the numbers in their names. Keys with
  // low numbers should be evicted first.
  double mean_rank(EvictionPolicy policy, size_t sample_size = 5) {
    double sum = 0;
    for (int i = 0; i < 200; ++i) sum += std::stod(evict(policy, sample_size).substr(1));
    return sum / 200;
  }

  Keyspace keyspace_{4, 1};
  EvictionPool pool_{keyspace_, 7};
  std::vector<unsigned> databases_{0};
};

TEST_F(EvictionPoolTest, LeastRecentlyUsedAreEvictedFirst) {
  for (uint32_t i = 0; i < 1000; ++i) add("k" + std::to_string(i), i);
  // Eviction in the exact order gives a mean rank of 99.5, eviction at random 499.5.
  EXPECT_LT(mean_rank(EvictionPolicy::kAllKeysLru), 175);
}

TEST_F(EvictionPoolTest, LargeSampleGivesTheTrueOrder) {
  for (uint32_t i = 0; i < 1000; ++i) add("k" + std::to_string(i), i);
  EXPECT_LT(mean_rank(EvictionPolicy::kAllKeysLru, 64), 115);
}

TEST_F(EvictionPoolTest, LeastFrequentlyUsedAreEvictedFirst) {
  for (uint32_t i = 0; i < 1000; ++i) {
    add("k" + std::to_string(i)).set_use_bits(KeyUse(kNowS, static_cast<uint8_t>(i / 4)).bits());
  }
  EXPECT_LT(mean_rank(EvictionPolicy::kAllKeysLfu), 175);
}

TEST_F(EvictionPoolTest, EarliestToExpireAreEvictedFirst) {
  for (uint32_t i = 0; i < 1000; ++i) {
    add("k" + std::to_string(i));
    expire_at("k" + std::to_string(i), 1'000'000 + i);
  }
  EXPECT_LT(mean_rank(EvictionPolicy::kVolatileTtl), 175);
}

TEST_F(EvictionPoolTest, RandomPolicyIsUniform) {
  for (uint32_t i = 0; i < 1000; ++i) add("k" + std::to_string(i), i);
  EXPECT_NEAR(mean_rank(EvictionPolicy::kAllKeysRandom), 499.5, 80);
}

TEST_F(EvictionPoolTest, VolatilePoliciesFindOnlyExpiringKeys) {
  for (uint32_t i = 0; i < 20'000; ++i) add("stays" + std::to_string(i));
  for (const auto policy : {EvictionPolicy::kVolatileLru, EvictionPolicy::kVolatileLfu,
                            EvictionPolicy::kVolatileRandom, EvictionPolicy::kVolatileTtl}) {
    std::set<std::string> expected;
    for (int i = 0; i < 10; ++i) {
      const std::string name = "goes" + std::to_string(i);
      add(name);
      expire_at(name, 1'000'000);
      expected.insert(name);
    }
    std::set<std::string> gone;
    for (int i = 0; i < 10; ++i) gone.insert(evict(policy));
    EXPECT_EQ(gone, expected);
    EXPECT_EQ(evict(policy), "");
  }
  EXPECT_EQ(keyspace_.db_size(0), 20'000U);
}

TEST_F(EvictionPoolTest, KeyUsedSinceItsSampleIsKept) {
  add("old", 1);
  const EvictionSettings settings{EvictionPolicy::kAllKeysLru, 5, kNowS};
  const auto choice = pool_.choose(settings, databases_);
  ASSERT_TRUE(choice.candidate);
  Entry* entry = keyspace_.find_any(0, keyspace_.ref("old"));
  EXPECT_TRUE(pool_.is_still_due(*entry, *choice.candidate, settings));
  entry->touch(kNowS);
  EXPECT_FALSE(pool_.is_still_due(*entry, *choice.candidate, settings));
}

TEST_F(EvictionPoolTest, AllDatabasesAreSampled) {
  databases_ = {0, 2, 3};
  add("a", 100, 0);
  add("b", 50, 2);
  add("c", 200, 3);
  EXPECT_EQ(evict(EvictionPolicy::kAllKeysLru), "b");
  EXPECT_EQ(evict(EvictionPolicy::kAllKeysLru), "a");
  EXPECT_EQ(evict(EvictionPolicy::kAllKeysLru), "c");
  std::set<std::string> gone;
  add("a", 100, 0);
  add("b", 50, 2);
  for (int i = 0; i < 2; ++i) gone.insert(evict(EvictionPolicy::kAllKeysRandom));
  EXPECT_EQ(gone, (std::set<std::string>{"a", "b"}));
}

TEST_F(EvictionPoolTest, StripesHeldByTheCallerAreSkipped) {
  add("a", 1);
  const KeyRef key = keyspace_.ref("a");
  const auto lock = keyspace_.lock_exclusive(key);
  for (const auto policy : {EvictionPolicy::kAllKeysLru, EvictionPolicy::kAllKeysRandom}) {
    const auto choice = pool_.choose({policy, 5, kNowS, StripeWait::kSkip}, databases_);
    EXPECT_FALSE(choice.candidate);
    EXPECT_TRUE(choice.is_any_left);
  }
}

}  // namespace
}  // namespace core::keyspace
