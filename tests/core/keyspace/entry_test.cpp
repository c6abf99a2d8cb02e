// SPDX-License-Identifier: MIT
#include "core/keyspace/entry.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/bloom/scalable_filter.h"

namespace core::keyspace {
namespace {

std::string text_of(const Entry& entry) {
  IntegerText scratch;
  return std::string(entry.text(scratch));
}

TEST(EntryTest, KeepsKeysOfAnyLength) {
  for (const size_t size : {0, 1, 5, 6, 7, 10, 100, 70000}) {
    const std::string key(size, 'k');
    const EntryPtr entry = Entry::create(key);
    EXPECT_EQ(entry->key(), key);
    EXPECT_EQ(text_of(*entry), "");
    EXPECT_FALSE(entry->has_expiry());
  }
}

TEST(EntryTest, TenByteKeyCosts48Bytes) {
  EXPECT_EQ(Entry::create("0123456789")->memory_bytes(), 48U);
}

TEST(EntryTest, OnlyCanonicalIntegersBecomeIntegers) {
  const EntryPtr entry = Entry::create("key");
  for (const char* text : {"0", "-1", "42", "9223372036854775807", "-9223372036854775808"}) {
    ASSERT_TRUE(entry->set_string(text));
    EXPECT_EQ(entry->kind(), ValueKind::kInteger) << text;
    EXPECT_EQ(entry->encoding(), "int");
    EXPECT_EQ(text_of(*entry), text);
    EXPECT_EQ(entry->string_size(), std::string(text).size());
  }
  for (const char* text :
       {"", "-", "-0", "+1", "007", "-01", " 1", "1 ", "1.0", "1e3", "9223372036854775808",
        "-9223372036854775809", "111111111111111111111"}) {
    ASSERT_TRUE(entry->set_string(text));
    EXPECT_NE(entry->kind(), ValueKind::kInteger) << text;
    EXPECT_EQ(text_of(*entry), text);
  }
}

TEST(EntryTest, ValuesKeepTheirBytesAcrossAllKinds) {
  const std::string values[] = {"12",
                                "short",
                                std::string("\0nul\0", 5),
                                std::string(15, 'a'),
                                std::string(16, 'b'),
                                std::string(44, 'c'),
                                std::string(45, 'd'),
                                std::string(100000, 'e')};
  const EntryPtr entry = Entry::create("key");
  for (const auto& from : values) {
    for (const auto& to : values) {
      ASSERT_TRUE(entry->set_string(from));
      ASSERT_TRUE(entry->set_string(to));
      EXPECT_EQ(text_of(*entry), to);
      EXPECT_EQ(entry->string_size(), to.size());
    }
  }
}

TEST(EntryTest, EncodingFollowsLengthAndMutability) {
  const EntryPtr entry = Entry::create("key");
  ASSERT_TRUE(entry->set_string("text"));
  EXPECT_EQ(entry->encoding(), "embstr");
  ASSERT_TRUE(entry->set_string(std::string(44, 'x')));
  EXPECT_EQ(entry->encoding(), "embstr");
  ASSERT_TRUE(entry->set_string(std::string(45, 'x')));
  EXPECT_EQ(entry->encoding(), "raw");
  ASSERT_TRUE(entry->set_plain_string("10"));
  EXPECT_EQ(entry->encoding(), "embstr");
  EXPECT_EQ(entry->kind(), ValueKind::kShort);
  entry->set_integer(7);
  EXPECT_EQ(entry->encoding(), "int");
}

TEST(EntryTest, RawStringsStayRawUntilSetAgain) {
  const EntryPtr entry = Entry::create("key");
  entry->set_integer(123);
  ASSERT_TRUE(entry->make_raw().append("45"));
  EXPECT_EQ(entry->encoding(), "raw");
  EXPECT_EQ(text_of(*entry), "12345");
  ASSERT_TRUE(entry->set_string(std::string(20, 'x')));
  EXPECT_EQ(entry->encoding(), "embstr");
  entry->make_raw();
  EXPECT_EQ(entry->encoding(), "raw");
  entry->make_raw().shrink(0);
  EXPECT_EQ(text_of(*entry), "");
  EXPECT_EQ(entry->encoding(), "raw");
}

TEST(EntryTest, ClonesAreIndependent) {
  const EntryPtr entry = Entry::create("from");
  entry->set_expires_at_ms(1234);
  for (const std::string& text : {std::string("1"), std::string("abc"), std::string(99, 'z')}) {
    ASSERT_TRUE(entry->set_string(text));
    const EntryPtr copy = entry->clone("to");
    EXPECT_EQ(copy->key(), "to");
    EXPECT_EQ(text_of(*copy), text);
    EXPECT_EQ(copy->encoding(), entry->encoding());
    EXPECT_EQ(copy->expires_at_ms(), 1234);
    ASSERT_TRUE(copy->make_raw().append("more"));
    EXPECT_EQ(text_of(*entry), text);
  }
}

TEST(EntryTest, RenamingMovesTheValue) {
  EntryPtr entry = Entry::create("from");
  ASSERT_TRUE(entry->set_string(std::string(1000, 'v')));
  entry->set_expires_at_ms(5);
  entry->touch(77);
  IntegerText scratch;
  const char* data = entry->text(scratch).data();
  const EntryPtr renamed = Entry::with_key(std::move(entry), "a much longer name than before");
  EXPECT_EQ(renamed->key(), "a much longer name than before");
  EXPECT_EQ(renamed->text(scratch).data(), data);
  EXPECT_EQ(renamed->expires_at_ms(), 5);
  EXPECT_EQ(renamed->use_bits() >> 8, 77U);
}

TEST(EntryTest, LongStringsAreHeavyAndShortOnesKeepTheExpiry) {
  const EntryPtr entry = Entry::create("key");
  ASSERT_TRUE(entry->set_string(std::string(1 << 20, 'v')));
  entry->set_expires_at_ms(5);
  EXPECT_TRUE(entry->is_heavy());
  ASSERT_TRUE(entry->set_string(""));
  EXPECT_EQ(text_of(*entry), "");
  EXPECT_FALSE(entry->is_heavy());
  EXPECT_EQ(entry->expires_at_ms(), 5);
}

TEST(EntryTest, ExpiresAfterItsLastMillisecond) {
  const EntryPtr entry = Entry::create("key");
  EXPECT_FALSE(entry->expired(INT64_MAX));
  entry->set_expires_at_ms(100);
  EXPECT_FALSE(entry->expired(100));
  EXPECT_TRUE(entry->expired(101));
  EXPECT_FALSE(entry->expired(kIgnoreExpiry));
}

std::unique_ptr<bloom::ScalableFilter> make_filter(uint64_t capacity) {
  const UnlimitedMemory budget;
  bloom::FilterParameters parameters;
  parameters.capacity = capacity;
  auto filter = bloom::ScalableFilter::create(parameters, budget);
  return filter ? std::move(*filter) : nullptr;
}

TEST(EntryTest, FiltersAreOwnedMovedAndCloned) {
  const UnlimitedMemory budget;
  EntryPtr entry = Entry::create("filter");
  ASSERT_TRUE(entry->set_string(std::string(100, 'x')));
  entry->set_filter(make_filter(1000));
  ASSERT_TRUE(entry->is_filter());
  EXPECT_FALSE(entry->is_string());
  EXPECT_EQ(entry->encoding(), "raw");
  EXPECT_FALSE(entry->is_heavy());
  EXPECT_GT(entry->memory_bytes(), entry->filter().size_bytes());
  entry->filter().add("item", budget);

  const EntryPtr copy = entry->clone("copy");
  ASSERT_NE(copy, nullptr);
  entry->filter().add("later", budget);
  EXPECT_TRUE(copy->filter().may_contain("item"));
  EXPECT_FALSE(copy->filter().may_contain("later"));

  entry = Entry::with_key(std::move(entry), "renamed");
  EXPECT_TRUE(entry->filter().may_contain("later"));
  entry->set_integer(1);
  EXPECT_EQ(text_of(*entry), "1");
}

TEST(EntryTest, BigFiltersAreHeavy) {
  const EntryPtr entry = Entry::create("filter");
  entry->set_filter(make_filter(1000000));
  EXPECT_TRUE(entry->is_heavy());
  entry->set_filter(make_filter(100));
  EXPECT_FALSE(entry->is_heavy());
}

TEST(EntryTest, MemoryCountsTheHeapValue) {
  const EntryPtr entry = Entry::create("0123456789");
  ASSERT_TRUE(entry->set_string(std::string(1000, 'v')));
  EXPECT_EQ(entry->memory_bytes(), 48U + 1024U);
}

}  // namespace
}  // namespace core::keyspace
