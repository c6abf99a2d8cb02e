// SPDX-License-Identifier: MIT
#include "core/keyspace/watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"

namespace core::keyspace {
namespace {

constexpr int64_t kWatchNow = 1000;

// Each test uses only one thread, so the fixture can hold the locks of all stripes throughout.
class WatchTest : public ::testing::Test {
 protected:
  WatchFlagPtr watch(unsigned database, std::string_view name, int64_t now_ms = kWatchNow) {
    auto flag = std::make_shared<WatchFlag>();
    keyspace_.watch(database, keyspace_.ref(name), flag, now_ms);
    return flag;
  }
  void add(unsigned database, std::string_view name, int64_t expires_at_ms = kNoExpiry) {
    const KeyRef key = keyspace_.ref(name);
    keyspace_.set_expiry(database, key, keyspace_.insert(database, key), expires_at_ms);
  }

  Keyspace keyspace_{4, 1};
  StripeLock guard_ = keyspace_.lock(kAllStripes, LockMode::kExclusive);
};

TEST_F(WatchTest, OnlyWatchersOfKeyAndDatabaseAreNotified) {
  const auto mine = watch(0, "a");
  const auto twin = watch(0, "a");
  const auto elsewhere = watch(1, "a");
  const auto other = watch(0, "b");
  keyspace_.notify_modified(0, keyspace_.ref("a"));
  EXPECT_TRUE(mine->dirty);
  EXPECT_TRUE(twin->dirty);
  EXPECT_FALSE(elsewhere->dirty);
  EXPECT_FALSE(other->dirty);
}

TEST_F(WatchTest, UnwatchEndsNotification) {
  const auto flag = watch(0, "a");
  keyspace_.watch(0, keyspace_.ref("a"), flag, kWatchNow);
  keyspace_.unwatch(0, keyspace_.ref("a"), flag);
  keyspace_.unwatch(0, keyspace_.ref("never"), flag);
  keyspace_.notify_modified(0, keyspace_.ref("a"));
  EXPECT_FALSE(flag->dirty);
  EXPECT_EQ(flag.use_count(), 1);
}

TEST_F(WatchTest, ExpiryNotifiesOnlyWatchersOfLiveKeys) {
  add(0, "a", kWatchNow);
  const auto alive = watch(0, "a", kWatchNow);
  const auto late = watch(0, "a", kWatchNow + 5);
  const KeyRef key = keyspace_.ref("a");
  EXPECT_FALSE(keyspace_.watched_key_expired(0, key, alive, kWatchNow));
  EXPECT_TRUE(keyspace_.watched_key_expired(0, key, alive, kWatchNow + 5));
  EXPECT_FALSE(keyspace_.watched_key_expired(0, key, late, kWatchNow + 5));
  EXPECT_EQ(keyspace_.find_for_write(0, key, kWatchNow + 5), nullptr);
  EXPECT_TRUE(alive->dirty);
  EXPECT_FALSE(late->dirty);
}

TEST_F(WatchTest, FlushNotifiesWatchersOfExistingKeys) {
  add(0, "there");
  const auto there = watch(0, "there");
  const auto absent = watch(0, "absent");
  const auto elsewhere = watch(1, "there");
  keyspace_.flush(0);
  EXPECT_TRUE(there->dirty);
  EXPECT_FALSE(absent->dirty);
  EXPECT_FALSE(elsewhere->dirty);
}

TEST_F(WatchTest, SwapNotifiesWatchersOfBothDatabases) {
  add(0, "a");
  add(1, "b");
  const auto leaves = watch(0, "a");
  const auto arrives = watch(0, "b");
  const auto arrives_there = watch(1, "a");
  const auto absent = watch(0, "c");
  const auto other = watch(2, "a");
  keyspace_.swap(0, 1, 0);
  EXPECT_TRUE(leaves->dirty);
  EXPECT_TRUE(arrives->dirty);
  EXPECT_TRUE(arrives_there->dirty);
  EXPECT_FALSE(absent->dirty);
  EXPECT_FALSE(other->dirty);
}

// As in Redis, SWAPDB does not change a key that is absent or expired in both databases.
TEST_F(WatchTest, SwapOfExpiredKeysIsNoChange) {
  constexpr int64_t kStale = kWatchNow - 1;
  add(1, "arrives", kStale);
  add(0, "both", kStale);
  add(1, "both", kStale);
  add(0, "leaves", kStale);
  add(0, "alive", kStale);
  add(1, "alive");
  const auto arrives = watch(0, "arrives");
  const auto both = watch(0, "both");
  const auto leaves = watch(0, "leaves");
  const auto alive = watch(0, "alive");
  keyspace_.swap(0, 1, kWatchNow);
  EXPECT_FALSE(arrives->dirty);
  EXPECT_FALSE(both->dirty);
  EXPECT_FALSE(leaves->dirty);
  EXPECT_TRUE(alive->dirty);
  // The swap has moved an expired key into database 0. When the client began to watch, database 0
  // had no such key. So the deletion of the expired key changes nothing for the client.
  keyspace_.find_for_write(0, keyspace_.ref("arrives"), kWatchNow);
  EXPECT_FALSE(arrives->dirty);
}

TEST(WatchTableTest, VisitsKeysOfOneDatabaseOnly) {
  WatchTable table;
  const auto flag = std::make_shared<WatchFlag>();
  const auto add = [&](unsigned database, std::string_view key) {
    table.add(database, key, flag, false);
  };
  add(0, "z");
  add(1, "");
  add(1, "a");
  add(3, "");
  const auto visited = [&](unsigned database) {
    std::vector<std::string> names;
    table.for_each_key(database, [&](std::string_view key) { names.emplace_back(key); });
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(visited(0), (Names{"z"}));
  EXPECT_EQ(visited(1), (Names{"", "a"}));
  EXPECT_EQ(visited(2), Names{});
  EXPECT_EQ(visited(3), (Names{""}));
  EXPECT_EQ(visited(4), Names{});
}

}  // namespace
}  // namespace core::keyspace
