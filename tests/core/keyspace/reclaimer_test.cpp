// SPDX-License-Identifier: MIT
#include "core/keyspace/reclaimer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

namespace core::keyspace {
namespace {

EntryPtr heavy_entry() {
  EntryPtr entry = Entry::create("heavy");
  EXPECT_TRUE(entry->set_string(std::string(100000, 'x')));
  return entry;
}

// Sanitizers detect leaks and double frees of the dropped entries.
TEST(ReclaimerTest, FreesAllDroppedItems) {
  Reclaimer reclaimer;
  reclaimer.drop(EntryPtr());
  reclaimer.drop(Entry::create("light"));
  for (size_t i = 0; i < 2 * Reclaimer::kQueueMax; ++i) reclaimer.drop(heavy_entry());
  EXPECT_LE(reclaimer.pending(), Reclaimer::kQueueMax + 1);
}

size_t thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(ReclaimerTest, ThreadStartsWithTheFirstItem) {
  const size_t before = thread_count();
  Reclaimer reclaimer;
  reclaimer.drop(Entry::create("light"));
  EXPECT_EQ(thread_count(), before);
  reclaimer.drop(heavy_entry());
  EXPECT_EQ(thread_count(), before + 1);
}

TEST(ReclaimerTest, CallerFreesItemsThatDoNotFit) {
  const size_t before = thread_count();
  Reclaimer reclaimer(0);
  reclaimer.drop(heavy_entry());
  EXPECT_EQ(reclaimer.pending(), 0U);
  EXPECT_EQ(thread_count(), before);
}

TEST(ReclaimerTest, FreesFlushedTablesAndExpiredValues) {
  Keyspace keyspace(1, 3);
  Reclaimer reclaimer;
  keyspace.set_reclaimer(&reclaimer);
  const KeyRef key = keyspace.ref("heavy");
  const StripeLock guard = keyspace.lock(kAllStripes, LockMode::kExclusive);
  keyspace.put(0, key, heavy_entry());
  keyspace.set_expiry(0, key, *keyspace.find(0, key, 0), 5);
  EXPECT_EQ(keyspace.find_for_write(0, key, 6), nullptr);
  keyspace.put(0, key, heavy_entry());
  reclaimer.drop(keyspace.flush_all());
  EXPECT_EQ(keyspace.db_size(0), 0U);
}

TEST(ReclaimerTest, PendingFallsToZero) {
  Reclaimer reclaimer;
  for (int i = 0; i < 10; ++i) reclaimer.drop(heavy_entry());
  while (reclaimer.pending() > 0) std::this_thread::yield();
  SUCCEED();
}

}  // namespace
}  // namespace core::keyspace
