// SPDX-License-Identifier: MIT
#include "core/keyspace/key_use.h"

#include <gtest/gtest.h>

namespace core::keyspace {
namespace {

TEST(KeyUseTest, ClockWrapsAndTheNearFutureIsNow) {
  EXPECT_EQ(KeyUse(100, 5).idle_s(107), 7U);
  EXPECT_EQ(KeyUse(KeyUse::kClockMask - 1, 5).idle_s(3), 5U);
  EXPECT_EQ(KeyUse(1'700'000'000, 5).idle_s(1'700'000'050), 50U)
      << "only the low 24 bits of the clock count";
  EXPECT_EQ(KeyUse(108, 5).idle_s(107), 0U) << "another thread's clock is slightly ahead";
  EXPECT_EQ(KeyUse(0, 5).idle_s(KeyUse::kClockMask - 4000), KeyUse::kClockMask - 4000);
  EXPECT_EQ(KeyUse::idle_for(50, 20, 5).idle_s(20), 50U);
  EXPECT_EQ(KeyUse::idle_for(uint64_t{1} << 62, 20, 5).idle_s(20), KeyUse::kIdleMaxS);
}

TEST(KeyUseTest, WithoutAFactorEveryUseCountsUpTo255) {
  UseRules rules;
  rules.log_factor = 0;
  KeyUse use(0, kFirstUseCount);
  for (int uses = 1; uses <= 300; ++uses) {
    use = use.used(0, rules);
    EXPECT_EQ(use.stored_count(), std::min(5 + uses, 255));
  }
}

TEST(KeyUseTest, CountDecaysByTheMinute) {
  UseRules rules;
  const KeyUse use(0, 20);
  EXPECT_EQ(use.count(59, rules), 20);
  EXPECT_EQ(use.count(60, rules), 19);
  EXPECT_EQ(use.count(10 * 60, rules), 10);
  EXPECT_EQ(use.count(100 * 60, rules), 0);
  rules.decay_minutes = 4;
  EXPECT_EQ(use.count(10 * 60, rules), 18);
  rules.decay_minutes = 0;
  EXPECT_EQ(use.count(100 * 60, rules), 20);
}

TEST(KeyUseTest, UseStoresTheDecayedCountAndTheTime) {
  UseRules rules;
  rules.log_factor = 0;
  const KeyUse used = KeyUse(0, 20).used(10 * 60, rules);
  EXPECT_EQ(used.stored_count(), 11);
  EXPECT_EQ(used.clock_s(), 600U);
}

// Redis' documentation states the counts 10, 18, 142 and 255 for a hundred, a thousand, 100,000 and
// a million uses with `lfu-log-factor 10`.
TEST(KeyUseTest, CountGrowsWithTheLogarithm) {
  UseRules rules;
  const auto mean_after = [&](int uses) {
    // After 100,000 uses the standard deviation of one run's count is 7. The standard deviation of
    // the mean of 200 runs is 0.5.
    constexpr int kRuns = 200;
    double sum = 0;
    for (int run = 0; run < kRuns; ++run) {
      KeyUse use(0, kFirstUseCount);
      for (int i = 0; i < uses; ++i) use = use.used(0, rules);
      sum += use.stored_count();
    }
    return sum / kRuns;
  };
  EXPECT_NEAR(mean_after(100), 10, 2);
  EXPECT_NEAR(mean_after(1000), 18, 3);
  EXPECT_NEAR(mean_after(100'000), 142, 8);
}

}  // namespace
}  // namespace core::keyspace
