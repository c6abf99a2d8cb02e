// SPDX-License-Identifier: MIT
#include "core/keyspace/slot_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "tests/support/upsert.h"

namespace core::keyspace {
namespace {

class SlotKeysTest : public ::testing::Test {
 protected:
  SlotKeysTest() { keyspace_.place_by_slot(); }

  void add(const std::string& name) {
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_exclusive(key);
    upsert(keyspace_, 0, key, 0);
  }
  std::set<std::string> names_in(unsigned slot, size_t most = 1000) {
    std::set<std::string> names;
    for_each_in_slot(keyspace_, slot, Locking::kTake, [&](const Entry& entry) {
      EXPECT_TRUE(names.emplace(entry.key()).second) << entry.key();
      return names.size() < most;
    });
    return names;
  }

  Keyspace keyspace_{2, 99};
};

TEST_F(SlotKeysTest, KeysOfASlotAreFound) {
  for (int i = 0; i < 2000; ++i) add(fmt::format("k{}", i));
  for (int i = 0; i < 100; ++i) {
    add(fmt::format("{{foo}}{}", i));
    // The listing is complete even while the table grows.
    ASSERT_EQ(names_in(slot_of("foo")).size(), static_cast<size_t>(i) + 1);
  }
  EXPECT_TRUE(names_in(slot_of("foo")).contains("{foo}99"));
  EXPECT_EQ(names_in(slot_of("foo"), 7).size(), 7U);
}

// A writer must get the stripe's lock before a long listing ends.
TEST_F(SlotKeysTest, ListingReleasesTheLockBetweenSteps) {
  constexpr int kKeys = 10'000;
  // On a busy machine a writer may run only after the listing, and the test lists the keys again.
  constexpr int kRoundsMax = 100;
  for (int i = 0; i < kKeys; ++i) add(fmt::format("{{foo}}{}", i));
  bool wrote_meanwhile = false;
  for (int round = 0; round < kRoundsMax && !wrote_meanwhile; ++round) {
    std::atomic<bool> is_visiting{false};
    std::atomic<bool> has_written{false};
    std::thread writer([&] {
      while (!is_visiting) std::this_thread::yield();
      add(fmt::format("{{foo}}new{}", round));
      has_written = true;
    });
    std::set<std::string> names;
    for_each_in_slot(keyspace_, slot_of("foo"), Locking::kTake, [&](const Entry& entry) {
      is_visiting = true;
      std::this_thread::yield();
      names.emplace(entry.key());
      wrote_meanwhile = wrote_meanwhile || has_written;
      return true;
    });
    writer.join();
    EXPECT_GE(names.size(), static_cast<size_t>(kKeys));
  }
  EXPECT_TRUE(wrote_meanwhile);
}

TEST_F(SlotKeysTest, ListingEndsAtTheLastKey) {
  for (int i = 0; i < 1000; ++i) add(fmt::format("{{foo}}{}", i));
  const auto read_buckets = [this](unsigned slot) {
    return for_each_in_slot(keyspace_, slot, Locking::kTake, [](const Entry&) { return true; });
  };
  const uint64_t of_most = read_buckets(slot_of("foo"));
  ASSERT_GT(of_most, 10U);
  // Each of the twenty slots has one key, and all these keys are in the stripe of the key foo.
  uint64_t sum = 0;
  int slots = 0;
  for (int i = 0; slots < 20; ++i) {
    const std::string name = fmt::format("k{}", i);
    if (stripe_of_slot(slot_of(name)) != stripe_of_slot(slot_of("foo"))) continue;
    if (keyspace_.slot_sizes()->at(slot_of(name)) != 0) continue;
    add(name);
    sum += read_buckets(slot_of(name));
    ++slots;
  }
  EXPECT_LT(sum, 15 * of_most) << "half of the stripe's buckets on average";
}

// The deletion of a listed key lowers the slot's count of keys. The listing must not conclude from
// the lower count that it has listed all keys.
TEST_F(SlotKeysTest, ListingMissesNoKeyWhenOthersGo) {
  constexpr int kKeys = 10'000;
  constexpr size_t kDeleted = 500;
  for (int i = 0; i < kKeys; ++i) add(fmt::format("{{foo}}{}", i));
  std::set<std::string> names;
  std::set<std::string> deleted;
  std::atomic<bool> has_read{false};
  std::thread writer([&] {
    while (!has_read) std::this_thread::yield();
    for (const std::string& name : deleted) {
      const KeyRef key = keyspace_.ref(name);
      const StripeLock guard = keyspace_.lock_exclusive(key);
      keyspace_.erase(0, key);
    }
  });
  for_each_in_slot(keyspace_, slot_of("foo"), Locking::kTake, [&](const Entry& entry) {
    names.emplace(entry.key());
    if (!has_read) deleted.emplace(entry.key());
    has_read = deleted.size() == kDeleted;
    std::this_thread::yield();
    return true;
  });
  writer.join();
  for (int i = 0; i < kKeys; ++i) {
    const std::string name = fmt::format("{{foo}}{}", i);
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(SlotKeysTest, SizesAreCountedPerSlot) {
  SlotSizes sizes;
  sizes.count(slot_of("{foo}1"), 1);
  sizes.count(slot_of("{foo}2"), 1);
  sizes.count(slot_of("bar"), 1);
  sizes.count(slot_of("{foo}1"), -1);
  EXPECT_EQ(sizes.at(slot_of("foo")), 1U);
  EXPECT_EQ(sizes.at(slot_of("bar")), 1U);
  sizes.reset();
  EXPECT_EQ(sizes.at(slot_of("foo")), 0U);
}

TEST_F(SlotKeysTest, HashOfAKeyContainsItsSlot) {
  EXPECT_EQ(slot_of_hash(keyspace_.ref("").hash), slot_of(""));
  for (int i = 0; i < 1000; ++i) {
    const std::string name = fmt::format("name-{}{{{}}}", i, i % 300);
    EXPECT_EQ(slot_of_hash(keyspace_.ref(name).hash), slot_of(name)) << name;
  }
}

TEST_F(SlotKeysTest, EmptySlotHasNoKeys) {
  EXPECT_TRUE(names_in(0).empty());
  add("k");
  EXPECT_TRUE(names_in((slot_of("k") + kStripeCount) % kSlotCount).empty());
}

}  // namespace
}  // namespace core::keyspace
