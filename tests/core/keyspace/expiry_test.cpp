// SPDX-License-Identifier: MIT
#include "core/keyspace/expiry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <set>
#include <string>
#include <thread>

#include "tests/support/upsert.h"

namespace core::keyspace {
namespace {

class ManualClock final : public Clock {
 public:
  int64_t wall_ms() const override { return wall_ms_value; }
  // Each reading of the clock takes a microsecond, so that time limits have an effect.
  int64_t monotonic_us() const override { return monotonic_us_value++; }
  std::atomic<int64_t> wall_ms_value{1000};
  mutable std::atomic<int64_t> monotonic_us_value{0};
};

class ExpiryTest : public ::testing::Test {
 protected:
  void add(unsigned database, const std::string& name, int64_t expires_at_ms) {
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_exclusive(key);
    keyspace_.set_expiry(database, key, keyspace_.insert(database, key), expires_at_ms);
  }

  ManualClock clock_;
  Keyspace keyspace_{4, 11};
  ActiveExpiry expiry_{keyspace_, clock_};
};

TEST_F(ExpiryTest, DeletesOnlyExpiredKeys) {
  std::set<std::string> expired;
  keyspace_.set_hooks([&](unsigned database, std::string_view key) {
    expired.insert(fmt::format("{}{}", database, key));
  });
  for (int i = 0; i < 1000; ++i) {
    add(1, fmt::format("gone{}", i), 500);
    add(1, fmt::format("later{}", i), 5000);
    add(2, fmt::format("stays{}", i), kNoExpiry);
  }
  const ExpiryReport report = expiry_.run(100'000);
  EXPECT_FALSE(report.timed_out);
  EXPECT_EQ(report.expired, 1000U);
  EXPECT_EQ(expired.size(), 1000U);
  EXPECT_EQ(expired.count("1gone17"), 1U);
  EXPECT_EQ(keyspace_.db_size(1), 1000U);
  EXPECT_EQ(keyspace_.expires_count(1), 1000U);
  EXPECT_EQ(keyspace_.db_size(2), 1000U);
  EXPECT_EQ(keyspace_.expiry_statistics().expired.load(), 1000U);
}

TEST_F(ExpiryTest, KeysThatAreNotDueAreNotVisited) {
  for (int i = 0; i < 1000; ++i) add(0, fmt::format("k{}", i), i % 2 == 0 ? kNoExpiry : 5000);
  // Each reading of this clock takes 1 µs. run() reads the clock once, to set its time limit.
  // Tables without due keys cause no further reading.
  const int64_t before_us = clock_.monotonic_us();
  EXPECT_EQ(expiry_.run(1000).expired, 0U);
  EXPECT_EQ(clock_.monotonic_us() - before_us, 2);
}

TEST_F(ExpiryTest, RunsAreBoundedAndContinueWhereTheLastEnded) {
  for (int i = 0; i < 10'000; ++i) add(3, fmt::format("k{}", i), 500);
  size_t runs = 0;
  while (keyspace_.db_size(3) > 0) {
    // run() reads the clock once for each stripe lock that it takes. Each read advances the test's
    // clock by 1 µs, so a run of at most 4 µs takes at most four locks.
    const ExpiryReport report = expiry_.run(4);
    EXPECT_LE(report.expired, 4 * 64U);
    EXPECT_EQ(report.timed_out, keyspace_.db_size(3) > 0);
    ASSERT_LT(++runs, 200U);
  }
  EXPECT_GE(runs, 14U);
  add(3, "a", 500);
  EXPECT_TRUE(expiry_.run(0).timed_out);
  EXPECT_EQ(keyspace_.db_size(3), 1U);
}

TEST_F(ExpiryTest, FollowsEveryChangeOfAnExpiry) {
  const auto expire_at = [&](const std::string& name, int64_t expires_at_ms) {
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_exclusive(key);
    keyspace_.set_expiry(0, key, *keyspace_.find_any(0, key), expires_at_ms);
  };
  for (const char* name : {"later", "sooner", "never", "again", "renamed", "replaced"}) {
    add(0, name, 3000);
  }
  expire_at("later", 9000);
  expire_at("sooner", 2000);
  expire_at("never", kNoExpiry);
  expire_at("again", kNoExpiry);
  expire_at("again", 2000);
  {
    const KeyRef from = keyspace_.ref("renamed");
    const KeyRef to = keyspace_.ref("new name");
    const StripeLock guard =
        keyspace_.lock(Keyspace::mask_of(from) | Keyspace::mask_of(to), LockMode::kExclusive);
    keyspace_.rename(0, from, to);
  }
  {
    const KeyRef key = keyspace_.ref("replaced");
    const StripeLock guard = keyspace_.lock_exclusive(key);
    EntryPtr entry = Entry::create("replaced");
    entry->set_expires_at_ms(2000);
    keyspace_.put(0, key, std::move(entry));
  }
  const auto names_at = [&](int64_t now_ms) {
    clock_.wall_ms_value = now_ms;
    expiry_.run(1000);
    std::set<std::string> names;
    keyspace_.for_each(0, [&](const Entry& entry) { names.emplace(entry.key()); });
    return names;
  };
  EXPECT_EQ(names_at(2000).size(), 6U);
  EXPECT_EQ(names_at(2001), (std::set<std::string>{"later", "never", "new name"}));
  EXPECT_EQ(names_at(3001), (std::set<std::string>{"later", "never"}));
  keyspace_.swap(0, 2, 0);
  clock_.wall_ms_value = 9001;
  expiry_.run(1000);
  EXPECT_EQ(keyspace_.db_size(2), 1U);
  keyspace_.flush_all();
  expiry_.run(1000);
}

TEST_F(ExpiryTest, AverageTtlFollowsTheKeys) {
  const int64_t now_ms = 1'800'000'000'000;
  for (int i = 0; i < 100; ++i) {
    add(1, fmt::format("short{}", i), now_ms + 1000);
    add(1, fmt::format("long{}", i), now_ms + 3000);
    add(2, fmt::format("other{}", i), now_ms + 500);
    add(3, fmt::format("stays{}", i), kNoExpiry);
  }
  EXPECT_EQ(average_ttl_ms(keyspace_, 1, now_ms), 2000);
  EXPECT_EQ(average_ttl_ms(keyspace_, 1, now_ms + 300), 1700);
  EXPECT_EQ(average_ttl_ms(keyspace_, 2, now_ms), 500);
  EXPECT_EQ(average_ttl_ms(keyspace_, 3, now_ms), 0);
  // In the average time to live, overdue keys count as having no remaining time.
  EXPECT_EQ(average_ttl_ms(keyspace_, 2, now_ms + 5000), 0);
  keyspace_.swap(1, 2, 0);
  EXPECT_EQ(average_ttl_ms(keyspace_, 1, now_ms), 500);
  EXPECT_EQ(average_ttl_ms(keyspace_, 2, now_ms), 2000);
  // Deleted keys with the latest possible expiries must not change the average time to live.
  for (int i = 0; i < 1000; ++i) {
    add(1, fmt::format("far{}", i), std::numeric_limits<int64_t>::max() - i);
  }
  EXPECT_GT(average_ttl_ms(keyspace_, 1, now_ms), 1'000'000);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = fmt::format("far{}", i);
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_exclusive(key);
    keyspace_.erase(1, key);
  }
  EXPECT_EQ(average_ttl_ms(keyspace_, 1, now_ms), 500);
  keyspace_.flush(2);
  EXPECT_EQ(average_ttl_ms(keyspace_, 2, now_ms), 0);
}

TEST_F(ExpiryTest, RunsBesideWriters) {
  std::atomic<bool> stop{false};
  std::thread background([&] {
    while (!stop) expiry_.run(1000);
  });
  for (int i = 0; i < 5000; ++i) {
    const std::string name = fmt::format("k{}", i % 700);
    const KeyRef key = keyspace_.ref(name);
    const StripeLock guard = keyspace_.lock_exclusive(key);
    Entry& entry = upsert(keyspace_, 0, key, 1000);
    keyspace_.set_expiry(0, key, entry, i % 2 == 0 ? 500 : kNoExpiry);
  }
  stop = true;
  background.join();
  expiry_.run(1'000'000);
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

}  // namespace
}  // namespace core::keyspace
