// SPDX-License-Identifier: MIT
#include "core/keyspace/stripe_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "tests/support/upsert.h"

namespace core::keyspace {
namespace {

// Several threads move amounts between the same keys, but pass the keys in opposite orders. If each
// thread locked the keys in the order passed, the threads would deadlock. If two threads could hold
// the lock of the same key at the same time, the sum of all amounts would change.
TEST(StripeLockTest, OppositeOrdersNeitherDeadlockNorLoseUpdates) {
  constexpr int kKeys = 10;
  constexpr int kRounds = 2000;
  Keyspace keyspace(1, 5);
  std::vector<std::string> names;
  std::vector<KeyRef> keys;
  for (int i = 0; i < kKeys; ++i) names.push_back(fmt::format("account{}", i));
  for (const auto& name : names) keys.push_back(keyspace.ref(name));
  for (const auto& key : keys) {
    const StripeLock guard = keyspace.lock_exclusive(key);
    keyspace.insert(0, key).set_integer(100);
  }
  std::atomic<int> odd_sums{0};
  const auto move = [&](int first_index, int step) {
    for (int i = 0; i < kRounds; ++i) {
      const KeyRef& from =
          keys[static_cast<size_t>((first_index + i * step + kRounds * kKeys) % kKeys)];
      const KeyRef& to = keys[static_cast<size_t>((first_index + i * 3) % kKeys)];
      const StripeLock guard =
          keyspace.lock(Keyspace::mask_of(from) | Keyspace::mask_of(to), LockMode::kExclusive);
      Entry* source = keyspace.find_for_write(0, from, 0);
      source->set_integer(source->integer() - 1);
      Entry* target = keyspace.find_for_write(0, to, 0);
      target->set_integer(target->integer() + 1);
    }
  };
  const auto audit = [&] {
    StripeMask mask = 0;
    for (const auto& key : keys) mask |= Keyspace::mask_of(key);
    for (int i = 0; i < kRounds / 4; ++i) {
      const StripeLock guard = keyspace.lock(i % 8 == 0 ? kAllStripes : mask, LockMode::kShared);
      int64_t sum = 0;
      for (const auto& key : keys) sum += keyspace.find(0, key, 0)->integer();
      if (sum != 100 * kKeys) ++odd_sums;
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(move, 0, 1);
  threads.emplace_back(move, 9, -1);
  threads.emplace_back(move, 4, 7);
  threads.emplace_back(audit);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(odd_sums.load(), 0);
}

TEST(StripeLockTest, ReadersShareAndAccessClocksMayRace) {
  Keyspace keyspace(1, 5);
  const KeyRef key = keyspace.ref("hot");
  {
    const StripeLock guard = keyspace.lock_exclusive(key);
    keyspace.insert(0, key).set_integer(1);
  }
  std::vector<std::thread> threads;
  for (uint32_t clock_s = 1; clock_s <= 3; ++clock_s) {
    threads.emplace_back([&keyspace, &key, clock_s] {
      for (int i = 0; i < 1000; ++i) {
        const StripeLock guard = keyspace.lock_shared(key);
        keyspace.prefetch(0, key, PrefetchStep::kBucket);
        keyspace.find(0, key, 0)->touch(clock_s);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const StripeLock guard = keyspace.lock_shared(key);
  EXPECT_GE(keyspace.find(0, key, 0)->use_bits() >> 8, 1U);
}

TEST(StripeLockTest, InsertsScansAndCountersRunTogether) {
  Keyspace keyspace(2, 5);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    std::mt19937_64 random(3);
    while (!stop) {
      ScanOptions options{.cursor = 0, .count = 50};
      do {
        options.cursor = keyspace.scan(
            0, options, [](const Entry& entry) { ASSERT_FALSE(entry.key().empty()); });
      } while (options.cursor != 0);
      keyspace.random_key(0, random, 0);
      const StripeLock guard = keyspace.lock(kAllStripes, LockMode::kExclusive);
      keyspace.swap(0, 1, 0);
    }
  });
  std::vector<std::thread> writers;
  for (const char* prefix : {"a", "b"}) {
    writers.emplace_back([&keyspace, prefix] {
      for (int i = 0; i < 6000; ++i) {
        const std::string name = fmt::format("{}{}", prefix, i % 2000);
        const KeyRef key = keyspace.ref(name);
        EntryPtr dropped;
        const StripeLock guard = keyspace.lock_exclusive(key);
        if (i % 3 == 0) {
          dropped = keyspace.erase(0, key);
        } else {
          upsert(keyspace, 0, key, 0).set_integer(i);
        }
      }
    });
  }
  for (auto& writer : writers) writer.join();
  stop = true;
  reader.join();
  size_t visited = 0;
  const StripeLock guard = keyspace.lock(kAllStripes, LockMode::kShared);
  for (const unsigned database : {0U, 1U}) {
    keyspace.for_each(database, [&](const Entry&) { ++visited; });
  }
  EXPECT_EQ(visited, keyspace.db_size(0) + keyspace.db_size(1));
}

TEST(StripeLockTest, MovingAndUnlockingEarlyReleaseOnce) {
  Keyspace keyspace(1, 5);
  StripeLock first = keyspace.lock(kAllStripes, LockMode::kExclusive);
  StripeLock second = std::move(first);
  EXPECT_EQ(first.mask(), 0U);
  EXPECT_EQ(second.mask(), kAllStripes);
  second.unlock();
  first = keyspace.lock(1, LockMode::kExclusive);
  first = StripeLock();
  const StripeLock again = keyspace.lock(kAllStripes, LockMode::kExclusive);
  EXPECT_EQ(again.mode(), LockMode::kExclusive);
}

}  // namespace
}  // namespace core::keyspace
