// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_loader.h"

#include "core/keyspace/keyspace.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace persistence {
namespace {

constexpr int64_t kLoadedAtMs = 1000;

core::keyspace::EntryPtr entry_of(std::string_view name, int64_t expires_at_ms) {
  auto entry = core::keyspace::Entry::create(name);
  entry->set_expires_at_ms(expires_at_ms);
  return entry;
}

class KeyspaceLoaderTest : public ::testing::Test {
 protected:
  bool has(std::string_view name, unsigned database = 0) {
    return keyspace_.find_any(database, keyspace_.ref(name)) != nullptr;
  }

  core::keyspace::Keyspace keyspace_{2, 1};
};

TEST_F(KeyspaceLoaderTest, ExpiredKeysAreCountedAndDropped) {
  KeyspaceLoader loader(keyspace_, kLoadedAtMs);
  EXPECT_TRUE(loader.entry(0, entry_of("old", kLoadedAtMs - 1)));
  EXPECT_TRUE(loader.entry(1, entry_of("new", kLoadedAtMs + 1)));
  EXPECT_FALSE(has("old"));
  EXPECT_TRUE(has("new", 1));
  EXPECT_EQ(loader.loaded_keys(), 1U);
  EXPECT_EQ(loader.expired_keys(), 1U);
  EXPECT_EQ(keyspace_.expires_count(1), 1U);
}

TEST_F(KeyspaceLoaderTest, ReplicasKeepExpiredKeys) {
  KeyspaceLoader loader(keyspace_, core::keyspace::kIgnoreExpiry);
  EXPECT_TRUE(loader.entry(0, entry_of("a", 1)));
  EXPECT_TRUE(has("a"));
  KeyspaceLoader late_loader(keyspace_, kLoadedAtMs);
  late_loader.keep_expired();
  EXPECT_TRUE(late_loader.entry(0, entry_of("b", 1)));
  EXPECT_TRUE(has("b"));
}

TEST_F(KeyspaceLoaderTest, DuplicatesAndMissingDatabasesAreErrors) {
  KeyspaceLoader loader(keyspace_, kLoadedAtMs);
  EXPECT_TRUE(loader.entry(0, entry_of("a", core::keyspace::kNoExpiry)));
  EXPECT_FALSE(loader.entry(0, entry_of("a", core::keyspace::kNoExpiry)));
  EXPECT_FALSE(loader.entry(2, entry_of("b", core::keyspace::kNoExpiry)));
}

TEST_F(KeyspaceLoaderTest, ReservesTheHintedNumberOfKeys) {
  KeyspaceLoader loader(keyspace_, kLoadedAtMs);
  const auto table_bytes = [&] { return core::keyspace::table_memory_bytes(keyspace_); };
  const size_t empty_bytes = table_bytes();
  loader.size_hint(2, 1'000'000, 0);
  EXPECT_EQ(table_bytes(), empty_bytes) << "the database does not exist";
  loader.size_hint(1, 100'000, 0);
  const size_t reserved_bytes = table_bytes();
  EXPECT_GT(reserved_bytes, size_t{100'000} * 8);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(loader.entry(1, entry_of("k" + std::to_string(i), core::keyspace::kNoExpiry)));
  }
  EXPECT_LT(table_bytes(), reserved_bytes * 3 / 2) << "chains may grow, but no second table";
}

TEST_F(KeyspaceLoaderTest, AuxFieldsAndForeignTypesAreRecorded) {
  KeyspaceLoader loader(keyspace_, kLoadedAtMs);
  EXPECT_TRUE(loader.aux("redis-ver", "1"));
  EXPECT_TRUE(loader.aux("redis-ver", "2"));
  EXPECT_EQ(loader.aux_fields().at("redis-ver"), "2");
  loader.foreign(0, "hash");
  loader.foreign(1, "hash");
  EXPECT_EQ(loader.foreign_types().at("hash"), 2U);
}

}  // namespace
}  // namespace persistence
