// SPDX-License-Identifier: MIT
#include "core/keyspace/expiry_index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace core::keyspace {
namespace {

TEST(ExpiryIndex, TakesTheEarliestFirst) {
  ExpiryIndex index;
  EXPECT_EQ(index.next_ms(), ExpiryIndex::kNever);
  EXPECT_EQ(index.take_due(ExpiryIndex::kNever), std::nullopt);
  std::mt19937_64 random(1);
  std::vector<int64_t> deadlines;
  for (int i = 0; i < 3000; ++i) {
    deadlines.push_back(static_cast<int64_t>(random() % 1000));
    index.add(deadlines.back(), static_cast<uint64_t>(deadlines.back()) * 7);
    EXPECT_EQ(index.next_ms(), *std::ranges::min_element(deadlines));
  }
  std::ranges::sort(deadlines);
  // A key is still alive during the millisecond of its deadline.
  EXPECT_EQ(index.take_due(deadlines.front()), std::nullopt);
  for (const int64_t deadline_ms : deadlines) {
    EXPECT_EQ(index.next_ms(), deadline_ms);
    EXPECT_EQ(index.take_due(1000), static_cast<uint64_t>(deadline_ms) * 7);
  }
  EXPECT_EQ(index.next_ms(), ExpiryIndex::kNever);
}

TEST(ExpiryIndex, SwapAndClearPublishTheNextDeadline) {
  ExpiryIndex one;
  ExpiryIndex two;
  one.add(5, 1);
  one.swap(two);
  EXPECT_EQ(one.next_ms(), ExpiryIndex::kNever);
  EXPECT_EQ(two.next_ms(), 5);
  two.clear();
  EXPECT_EQ(two.next_ms(), ExpiryIndex::kNever);
  EXPECT_EQ(two.size(), 0);
}

// Naive model of the keyspace, which adds records as the keyspace does.
class IndexModel {
 public:
  explicit IndexModel(uint64_t seed) : random_(seed) {}

  void set(uint64_t key, int64_t expires_at_ms) {
    const auto before = expiries_.find(key);
    const bool is_earlier = before == expiries_.end() || expires_at_ms < before->second;
    expiries_[key] = expires_at_ms;
    if (!is_earlier) return;
    index_.add(expires_at_ms, key);
    purge();
  }
  void remove(uint64_t key) {
    if (expiries_.erase(key) != 0) purge();
  }
  // Expires keys by the index, and compares them with those that are due in the model.
  void expire(int64_t now_ms) {
    while (const auto key = index_.take_due(now_ms)) {
      const auto found = expiries_.find(*key);
      if (found == expiries_.end()) continue;
      if (found->second < now_ms) {
        expiries_.erase(found);
      } else {
        index_.add(found->second, *key);
      }
    }
    for (const auto& [key, expires_at_ms] : expiries_) {
      ASSERT_GE(expires_at_ms, now_ms) << "key " << key << " is overdue";
    }
  }
  void expect_bounded() const {
    EXPECT_LE(index_.size(),
              ExpiryIndex::kRecordsPerKeyMax * expiries_.size() + ExpiryIndex::kSparesMax);
  }
  uint64_t draw(uint64_t below) { return random_() % below; }
  size_t record_count() const { return index_.size(); }

 private:
  void purge() {
    index_.purge(expiries_.size(), [this](uint64_t hash) { return latest_of(hash); });
  }
  std::optional<int64_t> latest_of(uint64_t hash) const {
    const auto found = expiries_.find(hash);
    return found == expiries_.end() ? std::nullopt : std::optional(found->second);
  }

  std::mt19937_64 random_;
  std::map<uint64_t, int64_t> expiries_;
  ExpiryIndex index_;
};

TEST(ExpiryIndex, FindsDueKeysAfterAnyChanges) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    IndexModel model(seed);
    int64_t now_ms = 0;
    for (int step = 0; step < 60'000; ++step) {
      const uint64_t key = model.draw(500);
      if (model.draw(3) == 0) {
        model.remove(key);
      } else {
        model.set(key, now_ms + static_cast<int64_t>(model.draw(5000)));
      }
      if (step % 100 != 0) continue;
      now_ms += static_cast<int64_t>(model.draw(30));
      model.expire(now_ms);
      if (::testing::Test::HasFatalFailure()) return;
      model.expect_bounded();
    }
  }
}

TEST(ExpiryIndex, RecordsOfDeletedKeysAreBounded) {
  IndexModel model(1);
  for (uint64_t i = 0; i < 100'000; ++i) {
    model.set(i, 1'000'000 + static_cast<int64_t>(i));
    model.remove(i);
  }
  EXPECT_LE(model.record_count(), ExpiryIndex::kSparesMax + 1);
}

TEST(ExpiryIndex, PurgePublishesTheNextDeadline) {
  ExpiryIndex index;
  const auto no_expiry = [](uint64_t) { return std::nullopt; };
  constexpr size_t kRecords = 2 * ExpiryIndex::kSparesMax;
  for (size_t i = 0; i < kRecords; ++i) index.add(static_cast<int64_t>(i), i);
  for (size_t i = 0; i < kRecords; ++i) {
    index.purge(0, no_expiry);
    ASSERT_EQ(index.take_due(index.next_ms()), std::nullopt);
  }
  while (index.next_ms() != ExpiryIndex::kNever) {
    const int64_t next_ms = index.next_ms();
    ASSERT_NE(index.take_due(next_ms + 1), std::nullopt);
  }
  EXPECT_EQ(index.size(), 0);
}

TEST(ExpiryIndex, FreesMemoryAsRecordsGo) {
  ExpiryIndex index;
  for (int64_t i = 0; i < 100'000; ++i) index.add(i, static_cast<uint64_t>(i));
  const size_t full_bytes = index.memory_bytes();
  while (index.take_due(90'000)) {
  }
  EXPECT_EQ(index.size(), 10'000);
  EXPECT_LT(index.memory_bytes(), full_bytes / 2);
  while (index.take_due(ExpiryIndex::kNever)) {
  }
  EXPECT_LE(index.memory_bytes(), 2048);
}

// After a mass deletion, the next command that adds an expiry must not wait until all records are
// purged.
TEST(ExpiryIndex, MassDeletionIsPurgedInSteps) {
  ExpiryIndex index;
  for (int64_t i = 0; i < 100'000; ++i) index.add(1'000'000 + i, static_cast<uint64_t>(i));
  for (int64_t i = 0; i < 20'000; ++i) {
    int lookups = 0;
    index.add(500'000, 1'000'000);
    const size_t size_before = index.size();
    index.purge(1, [&](uint64_t hash) -> std::optional<int64_t> {
      ++lookups;
      if (hash == 1'000'000) return 500'000;
      return std::nullopt;
    });
    if (size_before > 40'000) {
      ASSERT_LE(lookups, ExpiryIndex::kPurgeSteps);
    }
  }
  EXPECT_LE(index.size(), 2 * ExpiryIndex::kSparesMax);
  EXPECT_EQ(index.next_ms(), 500'000);
}

TEST(ExpiryIndex, ClearForgetsThePurgedRecords) {
  ExpiryIndex index;
  int lookups = 0;
  const auto latest_of = [&](uint64_t /*hash*/) {
    ++lookups;
    return std::optional<int64_t>(1000);
  };
  const auto add_records = [&] {
    for (uint64_t i = 0; i < 2 * ExpiryIndex::kSparesMax; ++i) index.add(1000, i);
  };
  add_records();
  while (lookups < 1000) index.purge(0, latest_of);
  index.clear();
  add_records();
  lookups = 0;
  // The records checked before clear() do not count, so no pass over all records has ended.
  for (int call = 1; call <= 10; ++call) index.purge(0, latest_of);
  EXPECT_EQ(lookups, 10 * ExpiryIndex::kPurgeSteps);
}

TEST(ExpiryIndex, RecordsOfOneKeyAreBounded) {
  IndexModel model(1);
  for (uint64_t i = 0; i < 1000; ++i) model.set(i, 1'000'000);
  // All records of the key have the deadline of the key's current expiry, so no record looks
  // outdated.
  for (int64_t i = 0; i < 100'000; ++i) {
    model.remove(1);
    model.set(1, 1'000'000);
    model.expect_bounded();
  }
  model.expire(1'000'001);
}

}  // namespace
}  // namespace core::keyspace
