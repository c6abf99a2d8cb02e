// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_entry.h"

#include <gtest/gtest.h>

#include "persistence/bytes/byte_codec.h"
#include "persistence/rdb/rdb_reader.h"
#include "tests/support/budget.h"

namespace persistence {
namespace {

std::string name_and_value(std::string_view name, std::string_view value) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.string(name, Packing::kNever);
  writer.string(value, Packing::kNever);
  return bytes;
}

TEST(RdbEntry, NameValueAndAttributesMakeAnEntry) {
  const std::string bytes = name_and_value("key", "value");
  StreamReader reader(bytes);
  const core::UnlimitedMemory budget;
  RdbEntryReader values(reader, budget, true);
  const std::string name = values.name();
  auto entry = values.string(name);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->key(), "key");
  core::keyspace::IntegerText scratch;
  EXPECT_EQ(entry->text(scratch), "value");
  RdbKeyAttributes attributes;
  attributes.expires_at_ms = 5;
  attributes.apply_to(*entry);
  EXPECT_EQ(entry->expires_at_ms(), 5);
  EXPECT_TRUE(reader.at_end());
}

TEST(RdbEntry, ValuesCanBeSkipped) {
  const std::string bytes = name_and_value("key", std::string(100'000, 'v'));
  StreamReader reader(bytes);
  const core::UnlimitedMemory budget;
  RdbEntryReader values(reader, budget, false);
  const auto entry = values.string(values.name());
  ASSERT_NE(entry, nullptr);
  core::keyspace::IntegerText scratch;
  EXPECT_EQ(entry->text(scratch), "");
  EXPECT_TRUE(reader.at_end());
}

TEST(RdbEntry, FaultReturnsNoEntry) {
  const std::string whole = name_and_value("key", "value");
  const core::UnlimitedMemory budget;
  for (size_t size = 0; size < whole.size(); ++size) {
    StreamReader reader(std::string_view(whole).substr(0, size));
    RdbEntryReader values(reader, budget, true);
    const auto entry = values.string(values.name());
    EXPECT_EQ(entry, nullptr) << size;
    ASSERT_FALSE(reader.ok()) << size;
    EXPECT_EQ(reader.error().code, core::ErrorCode::kDamaged) << size;
    EXPECT_EQ(values.filter("key", 7), nullptr);
  }
}

TEST(RdbEntry, BudgetIsCheckedForLongValues) {
  const std::string bytes = name_and_value("key", std::string(100'000, 'v'));
  StreamReader reader(bytes);
  const support::Budget budget(1000);
  RdbEntryReader values(reader, budget, true);
  EXPECT_EQ(values.string(values.name()), nullptr);
  EXPECT_TRUE(reader.error().message.ends_with(kValueDoesNotFit)) << reader.error().message;
  EXPECT_EQ(reader.error().code, core::ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace persistence
