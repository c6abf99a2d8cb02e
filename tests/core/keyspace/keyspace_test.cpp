// SPDX-License-Identifier: MIT
#include "core/keyspace/keyspace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/keyspace/expiry_index.h"
#include "core/keyspace/slot_keys.h"
#include "tests/support/upsert.h"

namespace core::keyspace {
namespace {

constexpr int64_t kNow = 1000;

class KeyspaceTest : public ::testing::Test {
 protected:
  Entry& add(unsigned database, const std::string& name, int64_t expires_at_ms = kNoExpiry) {
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_exclusive(key);
    Entry& entry = upsert(keyspace_, database, key, kNow);
    keyspace_.set_expiry(database, key, entry, expires_at_ms);
    return entry;
  }
  bool has(unsigned database, const std::string& name, int64_t now_ms = kNow) {
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_shared(key);
    return keyspace_.find(database, key, now_ms) != nullptr;
  }
  std::set<std::string> scan_all(unsigned database, ScanOptions options = {}) {
    std::set<std::string> names;
    do {
      options.cursor = keyspace_.scan(database, options,
                                      [&](const Entry& entry) { names.emplace(entry.key()); });
    } while (options.cursor != 0);
    return names;
  }

  Keyspace keyspace_{16, 99};
};

TEST_F(KeyspaceTest, DatabasesAreSeparate) {
  add(0, "a");
  add(1, "a");
  add(1, "b");
  EXPECT_EQ(keyspace_.db_size(0), 1U);
  EXPECT_EQ(keyspace_.db_size(1), 2U);
  EXPECT_TRUE(has(0, "a"));
  EXPECT_FALSE(has(0, "b"));
}

TEST_F(KeyspaceTest, ExpiryCountersFollowEveryChange) {
  add(0, "a", 5000);
  add(0, "b", 5000);
  EXPECT_EQ(keyspace_.expires_count(0), 2U);
  add(0, "a", 6000);
  EXPECT_EQ(keyspace_.expires_count(0), 2U);
  add(0, "a", kNoExpiry);
  EXPECT_EQ(keyspace_.expires_count(0), 1U);
  const KeyRef b = keyspace_.ref("b");
  const StripeLock guard = keyspace_.lock_exclusive(b);
  EntryPtr entry = keyspace_.erase(0, b);
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
  EXPECT_EQ(keyspace_.put(1, b, std::move(entry)), nullptr);
  EXPECT_EQ(keyspace_.expires_count(1), 1U);
  EXPECT_NE(keyspace_.put(1, b, Entry::create("b")), nullptr);
  EXPECT_EQ(keyspace_.expires_count(1), 0U);
  EXPECT_EQ(keyspace_.db_size(1), 1U);
}

TEST_F(KeyspaceTest, ReadersIgnoreExpiredKeysAndWritersDelete) {
  std::vector<std::string> expired;
  keyspace_.set_hooks([&](unsigned database, std::string_view key) {
    expired.push_back(fmt::format("{}:{}", database, key));
  });
  add(3, "a", kNow + 1);
  EXPECT_TRUE(has(3, "a", kNow + 1));
  EXPECT_FALSE(has(3, "a", kNow + 2));
  EXPECT_EQ(keyspace_.db_size(3), 1U);
  const KeyRef key = keyspace_.ref("a");
  const StripeLock guard = keyspace_.lock_exclusive(key);
  EXPECT_NE(keyspace_.find_for_write(3, key, kIgnoreExpiry), nullptr);
  EXPECT_EQ(keyspace_.find_for_write(3, key, kNow + 2), nullptr);
  EXPECT_EQ(keyspace_.db_size(3), 0U);
  EXPECT_EQ(keyspace_.expires_count(3), 0U);
  EXPECT_EQ(keyspace_.expiry_statistics().expired.load(), 1U);
  EXPECT_EQ(expired, std::vector<std::string>{"3:a"});
}

TEST_F(KeyspaceTest, RenameReplacesTheTargetAndKeepsTheExpiry) {
  ASSERT_TRUE(add(0, "from", 5000).set_string("value"));
  add(0, "to", 7000);
  const KeyRef from = keyspace_.ref("from");
  const KeyRef to = keyspace_.ref("to");
  const StripeLock guard =
      keyspace_.lock(Keyspace::mask_of(from) | Keyspace::mask_of(to), LockMode::kExclusive);
  const EntryPtr replaced = keyspace_.rename(0, from, to);
  EXPECT_EQ(replaced->expires_at_ms(), 7000);
  EXPECT_EQ(keyspace_.find(0, from, kNow), nullptr);
  const Entry* entry = keyspace_.find(0, to, kNow);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->expires_at_ms(), 5000);
  EXPECT_EQ(entry->string_size(), 5U);
  EXPECT_EQ(keyspace_.db_size(0), 1U);
  EXPECT_EQ(keyspace_.expires_count(0), 1U);
}

TEST_F(KeyspaceTest, DeletedKeysLeaveFewExpiryRecords) {
  constexpr int kKeys = 200'000;
  for (int i = 0; i < kKeys; ++i) add(0, fmt::format("k{}", i), 5000 + i);
  const size_t full_bytes = table_memory_bytes(keyspace_);
  for (int i = 0; i < kKeys; ++i) keyspace_.erase(0, keyspace_.ref(fmt::format("k{}", i)));
  size_t records = 0;
  for (size_t stripe = 0; stripe < kStripeCount; ++stripe) {
    records += keyspace_.database_of_stripe(stripe, 0).expiry_index.size();
  }
  EXPECT_LE(records, kStripeCount * (ExpiryIndex::kSparesMax + 1));
  EXPECT_LT(table_memory_bytes(keyspace_), full_bytes / 2);
}

TEST_F(KeyspaceTest, FlushDetachesAndSwapExchanges) {
  for (int i = 0; i < 300; ++i) add(0, fmt::format("k{}", i), i % 2 == 0 ? 5000 : kNoExpiry);
  add(1, "other");
  {
    const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
    keyspace_.swap(0, 1, 0);
  }
  EXPECT_EQ(keyspace_.db_size(0), 1U);
  EXPECT_EQ(keyspace_.db_size(1), 300U);
  EXPECT_EQ(keyspace_.expires_count(1), 150U);
  EXPECT_TRUE(has(1, "k7"));
  DetachedTables tables;
  {
    const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
    tables = keyspace_.flush(1);
  }
  size_t detached = 0;
  for (const auto& table : tables) detached += table->size();
  EXPECT_EQ(detached, 300U);
  EXPECT_EQ(keyspace_.db_size(1), 0U);
  EXPECT_EQ(keyspace_.expires_count(1), 0U);
  EXPECT_EQ(keyspace_.db_size(0), 1U);
  const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
  keyspace_.flush_all();
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(KeyspaceTest, ScanVisitsEveryKeyOnceWhenNothingChanges) {
  std::set<std::string> names;
  for (int i = 0; i < 5000; ++i) names.insert(fmt::format("k{}", i));
  for (const auto& name : names) add(2, name);
  for (const size_t count : {1, 10, 100000}) {
    EXPECT_EQ(scan_all(2, {.count = count}), names);
  }
  size_t visited = 0;
  ScanOptions options;
  do {
    const size_t before = visited;
    options.cursor = keyspace_.scan(2, options, [&](const Entry&) { ++visited; });
    EXPECT_LE(visited - before, 60U);
  } while (options.cursor != 0);
  EXPECT_EQ(visited, names.size());
}

TEST_F(KeyspaceTest, ScanReleasesTheLockAfterEachStripe) {
  for (int i = 0; i < 1000; ++i) add(0, fmt::format("k{}", i));
  size_t visited = 0;
  size_t reported = 0;
  const auto visitor = [&](const Entry&) { ++visited; };
  // The thread blocks if the scan still holds a lock. The test then fails after 20 s.
  const auto unlocked = [&] {
    EXPECT_GT(visited, reported);
    reported = visited;
    auto writer = std::async(std::launch::async, [&] {
      const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
    });
    EXPECT_EQ(writer.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  };
  for (ScanOptions options{.count = 10}; reported < 1000;) {
    options.cursor = keyspace_.scan(0, options, visitor, unlocked);
    EXPECT_EQ(reported, visited);
    if (options.cursor == 0) break;
  }
  EXPECT_EQ(reported, 1000U);
  keyspace_.scan(0, {.count = 100000}, visitor, unlocked);
  EXPECT_EQ(reported, 2000U);
}

TEST_F(KeyspaceTest, ScanAndRandomKeyWorkWithHeldLocks) {
  for (int i = 0; i < 100; ++i) add(0, fmt::format("k{}", i));
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    keyspace_.scan(0, {.cursor = random()}, [](const Entry&) {});
  }
  const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
  EXPECT_EQ(scan_all(0, {.locking = Locking::kHeld}).size(), 100U);
  EXPECT_TRUE(keyspace_.random_key(0, random, kNow, Locking::kHeld));
  size_t visited = 0;
  keyspace_.for_each(0, [&](const Entry&) { ++visited; });
  EXPECT_EQ(visited, 100U);
}

class KeyspaceBySlotTest : public KeyspaceTest {
 protected:
  KeyspaceBySlotTest() { keyspace_.place_by_slot(); }
  // Returns the number of keys per slot, counted by a walk over all keys.
  std::map<unsigned, uint64_t> count_again() {
    std::map<unsigned, uint64_t> sizes;
    for (const std::string& name : scan_all(0)) ++sizes[slot_of(name)];
    return sizes;
  }
  void check_counters() {
    auto sizes = count_again();
    for (unsigned slot = 0; slot < kSlotCount; ++slot) {
      ASSERT_EQ(keyspace_.slot_sizes()->at(slot), sizes[slot]) << slot;
    }
  }
};

TEST_F(KeyspaceBySlotTest, KeysOfASlotShareAStripe) {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = fmt::format("k{}", i);
    EXPECT_EQ(stripe_of(keyspace_.ref(name).hash), slot_of(name) % kStripeCount);
    EXPECT_EQ(tag_of(keyspace_.ref(name).hash), tag_of(hash_key(name, 99)));
  }
}

TEST_F(KeyspaceBySlotTest, CountersFollowEveryChange) {
  for (int i = 0; i < 3000; ++i) add(0, fmt::format("k{}", i), i % 2 == 0 ? kNow : 0);
  add(1, "k1");
  check_counters();
  {
    const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
    for (int i = 0; i < 1000; ++i) {
      const std::string name = fmt::format("k{}", i);
      keyspace_.find_for_write(0, keyspace_.ref(name), kNow + 1);
      if (i % 3 == 0) keyspace_.erase(0, keyspace_.ref(name));
    }
    keyspace_.rename(0, keyspace_.ref("k1001"), keyspace_.ref("k1002"));
    keyspace_.rename(0, keyspace_.ref("k1003"), keyspace_.ref("other"));
    keyspace_.erase(1, keyspace_.ref("k1"));
  }
  check_counters();
  const StripeLock guard = keyspace_.lock(kAllStripes, LockMode::kExclusive);
  keyspace_.insert(1, keyspace_.ref("swapped"));
  keyspace_.swap(1, 0, 0);
  EXPECT_EQ(keyspace_.slot_sizes()->at(slot_of("swapped")), 1U);
  EXPECT_EQ(keyspace_.slot_sizes()->at(slot_of("other")), 0U);
  keyspace_.flush(1);
  EXPECT_EQ(keyspace_.slot_sizes()->at(slot_of("swapped")), 1U);
  keyspace_.flush_all();
  EXPECT_EQ(keyspace_.slot_sizes()->at(slot_of("swapped")), 0U);
}

TEST_F(KeyspaceTest, RandomKeyFindsTheOnlyLiveKey) {
  std::mt19937_64 random(7);
  EXPECT_FALSE(keyspace_.random_key(0, random, kNow));
  for (int i = 0; i < 2000; ++i) add(0, fmt::format("k{}", i), kNow);
  EXPECT_FALSE(keyspace_.random_key(0, random, kNow + 1));
  add(0, "alive");
  EXPECT_EQ(keyspace_.random_key(0, random, kNow + 1), "alive");
}

TEST_F(KeyspaceTest, KeysInAllStripesCostAbout68BytesEach) {
  const size_t empty_bytes = table_memory_bytes(keyspace_);
  EXPECT_LE(empty_bytes, 96U * 1024U);
  size_t entry_bytes = 0;
  for (int i = 0; i < 10000; ++i) {
    entry_bytes += add(0, fmt::format("key:{}", 100000 + i)).memory_bytes();
  }
  const size_t total = entry_bytes + table_memory_bytes(keyspace_) - empty_bytes;
  EXPECT_LE(static_cast<double>(total) / 10000, 70.0);
}

}  // namespace
}  // namespace core::keyspace
