// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/snapshots.h"

namespace persistence {
namespace {

core::keyspace::EntryPtr text_entry(std::string_view name, std::string_view value) {
  auto entry = core::keyspace::Entry::create(name);
  EXPECT_TRUE(entry->set_string(value));
  return entry;
}

TEST(RdbStream, SnapshotOfKeysOnlyIsSound) {
  std::string bytes;
  StringSink sink(bytes);
  const RdbWriteOptions options;
  RdbStream stream(sink, options);
  stream.header();
  stream.database(3);
  stream.key(*text_entry("a", "1"));
  stream.database(0);
  auto last = text_entry("b", "two");
  last->set_expires_at_ms(77);
  stream.key(*last);
  const auto total = stream.finish();
  ASSERT_TRUE(total);
  EXPECT_EQ(total->keys, 2U);
  EXPECT_EQ(total->bytes, bytes.size());
  core::keyspace::Keyspace keyspace(4, 1);
  ASSERT_TRUE(snapshots::load(bytes, keyspace));
  const auto contents = snapshots::contents(keyspace);
  EXPECT_EQ(contents.at({3, "a"}).bytes, "1");
  EXPECT_EQ(contents.at({0, "b"}).expires_at_ms, 77);
}

TEST(RdbStream, FileForOthersHasAnOlderVersion) {
  for (const bool is_for_others : {false, true}) {
    std::string bytes;
    StringSink sink(bytes);
    RdbWriteOptions options;
    options.is_for_others = is_for_others;
    RdbStream stream(sink, options);
    stream.header();
    ASSERT_TRUE(stream.finish());
    EXPECT_TRUE(bytes.starts_with(is_for_others ? "REDIS0009" : "REDIS0010"));
    EXPECT_EQ(bytes.find("bloomery") == std::string::npos, is_for_others);
  }
}

TEST(RdbStream, FirstErrorOfTheSinkEndsTheWriting) {
  class FullSink final : public ByteSink {
   public:
    core::Result<> write(std::string_view /*bytes*/) override {
      ++writes;
      return core::Error{"ERR full"};
    }
    int writes = 0;
  } sink;
  RdbWriteOptions options;
  options.buffer_bytes = 64;
  RdbStream stream(sink, options);
  stream.header();
  EXPECT_FALSE(stream.status());
  stream.key(*text_entry("key", std::string(500, 'x')));
  const auto total = stream.finish();
  ASSERT_FALSE(total);
  EXPECT_EQ(total.error().message, "ERR full");
  EXPECT_EQ(sink.writes, 1);
}

}  // namespace
}  // namespace persistence
