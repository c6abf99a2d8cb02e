// SPDX-License-Identifier: MIT
#include "core/keyspace/table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/keyspace/key_hash.h"

namespace core::keyspace {
namespace {

constexpr uint64_t kHashSeed = 42;

std::string name_of(uint64_t number) {
  return fmt::format("key:{}", number);
}
uint64_t hash_of(std::string_view key) {
  return hash_key(key, kHashSeed);
}

void insert(Table& table, std::string_view key, int64_t value) {
  table.insert(Entry::create(key), hash_of(key)).set_integer(value);
}

// Grows and shrinks a table and its model together. Any step may start a resize.
class TableModelTest : public ::testing::TestWithParam<uint64_t> {};

void expect_equal(const Table& table, const std::unordered_map<std::string, int64_t>& model) {
  ASSERT_EQ(table.size(), model.size());
  for (const auto& [key, value] : model) {
    const Entry* entry = table.find(key, hash_of(key));
    ASSERT_NE(entry, nullptr) << key;
    ASSERT_EQ(entry->integer(), value) << key;
  }
  size_t visited = 0;
  table.for_each([&](const Entry& entry) { visited += model.count(std::string(entry.key())); });
  ASSERT_EQ(visited, model.size());
}

TEST_P(TableModelTest, AgreesWithAnUnorderedMap) {
  SCOPED_TRACE(GetParam());
  std::mt19937_64 random(GetParam());
  Table table(kHashSeed);
  std::unordered_map<std::string, int64_t> model;
  for (int64_t step = 0; step < 60000; ++step) {
    // Phases of growth and decline alternate, so that a resize of one kind overlaps the next phase.
    const bool growing = step / 10000 % 2 == 0;
    const std::string key = name_of(random() % 8000);
    if (random() % 10 < (growing ? 8U : 1U)) {
      EntryPtr entry = Entry::create(key);
      entry->set_integer(step);
      const EntryPtr old = table.replace(std::move(entry), hash_of(key));
      ASSERT_EQ(old != nullptr, model.count(key) == 1);
      model[key] = step;
    } else {
      const EntryPtr erased = table.erase(key, hash_of(key));
      ASSERT_EQ(erased != nullptr, model.erase(key) == 1);
    }
    if (step % 4999 == 0) expect_equal(table, model);
  }
  expect_equal(table, model);
}

// Entries present during the whole scan are returned, whatever is inserted or deleted between the
// calls.
TEST_P(TableModelTest, ScanReturnsEverythingThatStays) {
  SCOPED_TRACE(GetParam());
  std::mt19937_64 random(GetParam());
  for (const bool growing : {true, false}) {
    Table table(kHashSeed);
    for (uint64_t i = 0; i < 500; ++i) insert(table, fmt::format("stays:{}", i), 0);
    std::vector<std::string> others;
    for (uint64_t i = 0; i < (growing ? 10U : 20000U); ++i) {
      others.push_back(name_of(i));
      insert(table, others.back(), 0);
    }
    std::set<std::string> seen;
    uint64_t cursor = 0;
    uint64_t next_name = 1000000;
    const size_t buckets_before = table.bucket_count();
    do {
      cursor = table.scan(cursor, [&](const Entry& entry) { seen.emplace(entry.key()); });
      for (uint64_t changes = random() % 60; changes > 0; --changes) {
        if (growing) {
          insert(table, name_of(next_name++), 0);
        } else if (!others.empty()) {
          table.erase(others.back(), hash_of(others.back()));
          others.pop_back();
        }
      }
    } while (cursor != 0);
    EXPECT_NE(table.bucket_count(), buckets_before) << "no resize took place";
    for (uint64_t i = 0; i < 500; ++i) {
      ASSERT_EQ(seen.count(fmt::format("stays:{}", i)), 1U) << growing;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TableModelTest, ::testing::Values(1, 2, 20240611));

TEST(TableTest, EmptyTableAnswersAndTakesLittleMemory) {
  const Table table(kHashSeed);
  EXPECT_EQ(table.find("a", hash_of("a")), nullptr);
  EXPECT_EQ(table.scan(12345, [](const Entry&) { FAIL(); }), 0U);
  std::mt19937_64 random(1);
  EXPECT_EQ(table.random_entry(random), nullptr);
  EXPECT_LE(table.memory_bytes(), 160U);
}

TEST(TableTest, AnyCursorIsValid) {
  Table table(kHashSeed);
  for (uint64_t i = 0; i < 3000; ++i) {
    insert(table, name_of(i), 0);
    std::mt19937_64 random(i);
    table.scan(random(), [](const Entry&) {});
  }
  EXPECT_EQ(table.scan(~uint64_t{0}, [](const Entry&) {}), 0U);
}

TEST(TableTest, EqualTagsAndBucketsAreDistinguishedByKey) {
  Table table(kHashSeed);
  // One hash for all entries puts them in one chain with one tag.
  for (uint64_t i = 0; i < 5; ++i) table.insert(Entry::create(name_of(i)), 7);
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(table.find(name_of(i), 7)->key(), name_of(i));
  EXPECT_EQ(table.find(name_of(9), 7), nullptr);
  EXPECT_EQ(table.erase(name_of(2), 7)->key(), name_of(2));
  EXPECT_EQ(table.find(name_of(2), 7), nullptr);
}

TEST(TableTest, ShrinksAfterMassDeletion) {
  Table table(kHashSeed);
  for (uint64_t i = 0; i < 50000; ++i) insert(table, name_of(i), 0);
  const size_t peak_bytes = table.memory_bytes();
  for (uint64_t i = 0; i < 49990; ++i) table.erase(name_of(i), hash_of(name_of(i)));
  EXPECT_LT(table.memory_bytes(), peak_bytes / 100);
  EXPECT_EQ(table.size(), 10U);
}

TEST(TableTest, ResizingNeverMovesMoreThanAFewEntriesAtOnce) {
  Table table(kHashSeed);
  size_t resizing = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    insert(table, name_of(i), 0);
    resizing += table.is_resizing() ? 1 : 0;
  }
  // Each insert moves two buckets of about five entries, so doubling N entries takes about N / 10
  // inserts.
  EXPECT_GT(resizing, 1000U);
}

TEST(TableTest, ReservedTableIsNotResized) {
  for (const uint64_t count : {1, 5, 6, 1000, 20000}) {
    Table table(kHashSeed);
    table.reserve(count);
    const size_t buckets = table.bucket_count();
    for (uint64_t i = 0; i < count; ++i) insert(table, name_of(i), 0);
    EXPECT_EQ(table.bucket_count(), buckets) << count;
    Table grown(kHashSeed);
    for (uint64_t i = 0; i < count; ++i) insert(grown, name_of(i), 0);
    EXPECT_LE(buckets, 2 * grown.bucket_count()) << count;
  }
}

TEST(TableTest, ReservingIsAHint) {
  Table table(kHashSeed);
  table.reserve(100);
  table.reserve(10);
  EXPECT_GE(table.bucket_count(), 20U);
  for (uint64_t i = 0; i < 5000; ++i) insert(table, name_of(i), int64_t(i));
  const size_t buckets = table.bucket_count();
  table.reserve(1'000'000);
  EXPECT_EQ(table.bucket_count(), buckets) << "a table with entries is not resized";
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(table.find(name_of(i), hash_of(name_of(i)))->integer(), int64_t(i));
  }
  Table oversized(kHashSeed);
  oversized.reserve(1'000'000);
  for (uint64_t i = 0; i < 5000; ++i) insert(oversized, name_of(i), 0);
  for (uint64_t i = 0; i < 4999; ++i) oversized.erase(name_of(i), hash_of(name_of(i)));
  EXPECT_NE(oversized.find(name_of(4999), hash_of(name_of(4999))), nullptr);
  EXPECT_TRUE(oversized.is_resizing()) << "a deletion starts to shrink the table";
}

TEST(TableTest, TenThousandTenByteKeysCost64BytesEach) {
  Table table(kHashSeed);
  size_t entry_bytes = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const std::string key = fmt::format("key:{}", 100000 + i);
    entry_bytes += table.insert(Entry::create(key), hash_of(key)).memory_bytes();
  }
  const double per_key = static_cast<double>(entry_bytes + table.memory_bytes()) / 10000;
  RecordProperty("bytes_per_key", std::to_string(per_key));
  EXPECT_LE(per_key, 64.0);
}

// AddressSanitizer detects a read of the removed entry, whose pointer is still in the bucket.
TEST(TableTest, PrefetchTouchesNoRemovedEntry) {
  Table table(kHashSeed);
  for (uint64_t i = 0; i < 2000; ++i) insert(table, name_of(i), static_cast<int64_t>(i));
  for (uint64_t i = 0; i < 2000; i += 2) table.erase(name_of(i), hash_of(name_of(i)));
  for (uint64_t i = 0; i < 4000; ++i) {
    const uint64_t hash = hash_of(name_of(i));
    for (const PrefetchStep step : kPrefetchSteps) table.prefetch(hash, step);
  }
  EXPECT_EQ(table.size(), 1000U);
}

TEST(TableTest, RandomEntriesAreAboutEquallyLikely) {
  Table table(kHashSeed);
  for (uint64_t i = 0; i < 100; ++i) insert(table, name_of(i), static_cast<int64_t>(i));
  std::mt19937_64 random(20240611);
  std::map<int64_t, int> draws;
  for (int i = 0; i < 100000; ++i) ++draws[table.random_entry(random)->integer()];
  EXPECT_EQ(draws.size(), 100U);
  for (const auto& [key, count] : draws) {
    EXPECT_GT(count, 800) << key;
    EXPECT_LT(count, 1200) << key;
  }
}

}  // namespace
}  // namespace core::keyspace
