// SPDX-License-Identifier: MIT
#include "core/keyspace/expiry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <set>
#include <string>
#include <thread>

#include "core/keyspace/expiry_statistics.h"
#include "tests/support/upsert.h"

namespace core::keyspace {
namespace {

class ManualClock final : public Clock {
 public:
  int64_t wall_ms() const override { return wall_ms_value; }
  // Each look costs a microsecond, so that time limits bite.
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

TEST_F(ExpiryTest, DeletesWhatHasExpiredAndNothingElse) {
  std::set<std::string> expired;
  keyspace_.set_hooks([&](unsigned database, std::string_view key) {
    expired.insert(fmt::format("{}{}", database, key));
  });
  for (int i = 0; i < 1000; ++i) {
    add(1, fmt::format("gone{}", i), 500);
    add(1, fmt::format("later{}", i), 5000);
    add(2, fmt::format("stays{}", i), kNoExpiry);
  }
  const ExpiryReport report = expiry_.tick({.entries_max = 100000, .duration_us_max = 100000});
  EXPECT_FALSE(report.exhausted);
  EXPECT_EQ(report.expired, 1000U);
  EXPECT_EQ(expired.size(), 1000U);
  EXPECT_EQ(expired.count("1gone17"), 1U);
  EXPECT_EQ(keyspace_.db_size(1), 1000U);
  EXPECT_EQ(keyspace_.expires_count(1), 1000U);
  EXPECT_EQ(keyspace_.db_size(2), 1000U);
  EXPECT_EQ(keyspace_.expiry_statistics().expired.load(), 1000U);
  EXPECT_GT(keyspace_.expiry_statistics().stale_ratio.load(), 0.0);
}

TEST_F(ExpiryTest, SkipsDatabasesWithoutExpiringKeys) {
  for (int i = 0; i < 1000; ++i) add(0, fmt::format("k{}", i), kNoExpiry);
  EXPECT_EQ(expiry_.tick({}).looked_at, 0U);
}

TEST_F(ExpiryTest, TicksAreBoundedAndResumeWhereTheLastEnded) {
  for (int i = 0; i < 10000; ++i) add(3, fmt::format("k{}", i), 500);
  size_t ticks = 0;
  while (keyspace_.db_size(3) > 0) {
    const ExpiryReport report = expiry_.tick({.entries_max = 500, .duration_us_max = 100000});
    EXPECT_LE(report.looked_at, 700U);
    ASSERT_LT(++ticks, 100U);
  }
  EXPECT_GE(ticks, 14U);
  add(3, "a", 500);
  add(3, "b", 500);
  EXPECT_TRUE(expiry_.tick({.entries_max = 500, .duration_us_max = 1}).exhausted);
}

TEST_F(ExpiryTest, AverageTtlFollowsTheKeys) {
  const ExpiryStatistics& statistics = keyspace_.expiry_statistics();
  const ExpiryBudget everything{.entries_max = 100000, .duration_us_max = 1'000'000};
  const int64_t now_ms = clock_.wall_ms();
  for (int i = 0; i < 100; ++i) {
    add(1, fmt::format("short{}", i), now_ms + 1000);
    add(1, fmt::format("long{}", i), now_ms + 3000);
    add(2, fmt::format("other{}", i), now_ms + 500);
    add(3, fmt::format("stays{}", i), kNoExpiry);
  }
  expiry_.tick(everything);
  EXPECT_EQ(statistics.average_ttl_ms(1), 2000);
  EXPECT_EQ(statistics.average_ttl_ms(2), 500);
  EXPECT_EQ(statistics.average_ttl_ms(3), 0);
  // A change counts little by little.
  for (int i = 0; i < 100; ++i) add(2, fmt::format("later{}", i), now_ms + 1500);
  expiry_.tick(everything);
  EXPECT_EQ(statistics.average_ttl_ms(2), 510);
  keyspace_.swap(1, 2);
  EXPECT_EQ(statistics.average_ttl_ms(1), 510);
  EXPECT_EQ(statistics.average_ttl_ms(2), 2000);
  // Without expiring keys there is no average.
  clock_.wall_ms_value += 10'000;
  expiry_.tick(everything);
  expiry_.tick(everything);
  EXPECT_EQ(statistics.average_ttl_ms(1), 0);
  EXPECT_EQ(statistics.average_ttl_ms(2), 0);
}

TEST_F(ExpiryTest, AverageTtlOfKeysThatLiveAsLongAsCanBe) {
  // A time of day as it is, so that what remains is below the limit by more than a double rounds.
  clock_.wall_ms_value = 1'800'000'000'000;
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 10; ++i) add(1, fmt::format("k{}", i), kLatest);
  expiry_.tick({.entries_max = 100000, .duration_us_max = 1'000'000});
  const int64_t average_ms = keyspace_.expiry_statistics().average_ttl_ms(1);
  EXPECT_NEAR(static_cast<double>(average_ms), static_cast<double>(kLatest - clock_.wall_ms_value),
              1e6);
}

TEST_F(ExpiryTest, TicksCutByTimeAreCounted) {
  for (int i = 0; i < 1000; ++i) add(0, fmt::format("k{}", i), 500);
  EXPECT_TRUE(expiry_.tick({.entries_max = 100, .duration_us_max = 1'000'000}).exhausted);
  EXPECT_EQ(keyspace_.expiry_statistics().ticks_cut_by_time.load(), 0U);
  EXPECT_TRUE(expiry_.tick({.entries_max = 100, .duration_us_max = 0}).timed_out);
  EXPECT_EQ(keyspace_.expiry_statistics().ticks_cut_by_time.load(), 1U);
  keyspace_.expiry_statistics().reset();
  EXPECT_EQ(keyspace_.expiry_statistics().ticks_cut_by_time.load(), 0U);
  EXPECT_EQ(keyspace_.expiry_statistics().stale_ratio.load(), 0.0);
}

TEST_F(ExpiryTest, RunsBesideWriters) {
  std::atomic<bool> stop{false};
  std::thread background([&] {
    while (!stop) expiry_.tick({.entries_max = 200, .duration_us_max = 1000});
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
  while (expiry_.tick({}).expired > 0) {
  }
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

}  // namespace
}  // namespace core::keyspace
