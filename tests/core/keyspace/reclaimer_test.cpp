// SPDX-License-Identifier: MIT
#include "core/keyspace/reclaimer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace core::keyspace {
namespace {

EntryPtr heavy_entry() {
  EntryPtr entry = Entry::create("heavy");
  EXPECT_TRUE(entry->set_string(std::string(1 << 20, 'x')));
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

std::set<std::string> thread_ids() {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(task.path().filename());
  }
  return ids;
}

// Returns the number of threads that have started after thread_ids() returned `before`. It ignores
// threads that have ended, because the kernel may list a thread for a while after its end.
size_t started_since(const std::set<std::string>& before) {
  return static_cast<size_t>(std::ranges::count_if(
      thread_ids(), [&](const std::string& id) { return !before.contains(id); }));
}

TEST(ReclaimerTest, ThreadStartsWithTheFirstItem) {
  const std::set<std::string> before = thread_ids();
  Reclaimer reclaimer;
  reclaimer.drop(Entry::create("light"));
  EXPECT_EQ(started_since(before), 0U);
  reclaimer.drop(heavy_entry());
  EXPECT_EQ(started_since(before), 1U);
}

TEST(ReclaimerTest, CallerFreesItemsThatDoNotFit) {
  const std::set<std::string> before = thread_ids();
  Reclaimer reclaimer(0);
  reclaimer.drop(heavy_entry());
  EXPECT_EQ(reclaimer.pending(), 0U);
  EXPECT_EQ(started_since(before), 0U);
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
