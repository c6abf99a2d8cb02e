// SPDX-License-Identifier: MIT
//
// Decodes batches of keys on several threads. A snapshot that several threads decode gives the same
// keys as one that a single thread decodes.
#include "persistence/rdb/rdb_decoders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <random>
#include <string>
#include <thread>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_loader.h"
#include "persistence/rdb/rdb_reader.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"
#include "tests/support/snapshots.h"
#include "tests/support/upsert.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using core::keyspace::Keyspace;

RdbBatch batch_of(size_t size_bytes) {
  RdbBatch batch;
  batch.bytes.append(std::string(size_bytes, 'x'));
  batch.keys.emplace_back();
  return batch;
}

TEST(RdbDecoders, EachBatchIsDecodedOnce) {
  std::atomic<size_t> sum{0};
  {
    RdbDecoders decoders(3, [&](const RdbBatch& batch) -> core::Result<> {
      sum += batch.bytes.size();
      return {};
    });
    for (size_t round = 1; round <= 5; ++round) {
      for (size_t i = 1; i <= 500; ++i) EXPECT_TRUE(decoders.submit(batch_of(i)));
      EXPECT_TRUE(decoders.drain());
      EXPECT_EQ(sum, round * 500 * 501 / 2);
    }
  }
}

TEST(RdbDecoders, QueueIsBounded) {
  // The first batch blocks the only decoding thread. When the queue is full, submit() decodes
  // further batches on the calling thread.
  std::atomic<bool> is_held{true};
  const auto caller = std::this_thread::get_id();
  std::atomic<int> by_caller{0};
  const auto release = [&is_held] {
    is_held = false;
    is_held.notify_all();
  };
  RdbDecoders decoders(1, [&](const RdbBatch&) -> core::Result<> {
    if (std::this_thread::get_id() == caller) {
      ++by_caller;
      return {};
    }
    is_held.wait(true);
    return {};
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(decoders.submit(batch_of(1)));
  EXPECT_GE(by_caller, 80);
  release();
  EXPECT_TRUE(decoders.drain());
  is_held = true;
  by_caller = 0;
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(decoders.submit(batch_of(size_t{16} << 20)));
  EXPECT_GE(by_caller, 2) << "long batches count by their bytes";
  release();
}

TEST(RdbDecoders, FirstErrorEndsDecodingAndIsReturned) {
  RdbDecoders decoders(2, [](const RdbBatch& batch) -> core::Result<> {
    if (batch.bytes.size() == 5) throw std::bad_alloc();
    return {};
  });
  for (size_t i = 1; i <= 5; ++i) decoders.submit(batch_of(i));
  const auto drained = decoders.drain();
  ASSERT_FALSE(drained);
  EXPECT_TRUE(drained.error().message.starts_with("OOM")) << drained.error().message;
  EXPECT_FALSE(decoders.submit(batch_of(1)));
}

TEST(RdbDecoders, MemoryOfABatchIsReused) {
  RdbDecoders decoders(1, [](const RdbBatch&) -> core::Result<> { return {}; });
  EXPECT_EQ(decoders.empty_batch().bytes.capacity(), 0U);
  decoders.submit(batch_of(5000));
  ASSERT_TRUE(decoders.drain());
  const RdbBatch again = decoders.empty_batch();
  EXPECT_GE(again.bytes.capacity(), 5000U);
  EXPECT_EQ(again.bytes.size(), 0U);
  EXPECT_TRUE(again.keys.empty());
}

TEST(RdbDecoders, SpareMemoryIsBounded) {
  constexpr size_t kBatchBytes = size_t{7} << 20;
  RdbDecoders decoders(2, [](const RdbBatch&) -> core::Result<> { return {}; });
  for (int i = 0; i < 12; ++i) {
    decoders.submit(batch_of(kBatchBytes));
    ASSERT_TRUE(decoders.drain());
    decoders.submit(batch_of(1));
  }
  ASSERT_TRUE(decoders.drain());
  size_t kept_bytes = 0;
  for (int i = 0; i < 40; ++i) kept_bytes += decoders.empty_batch().bytes.capacity();
  EXPECT_GE(kept_bytes, 2 * kBatchBytes) << "memory of long batches is reused too";
  EXPECT_LE(kept_bytes, size_t{32} << 20);
  decoders.submit(batch_of(5000));
  ASSERT_TRUE(decoders.drain());
  EXPECT_GE(decoders.empty_batch().bytes.capacity(), 5000U)
      << "memory in use does not count as spare";
}

// Reads a snapshot and decodes it with `thread_count` threads. The read buffer is so small that
// reads end within fields of every kind.
core::Result<RdbReadResult> load_with(unsigned thread_count, std::string_view bytes,
                                      Keyspace& keyspace) {
  RdbReadOptions options;
  options.thread_count = thread_count;
  options.buffer_bytes = 300;
  options.foreign_types = ForeignTypes::kSkip;
  return snapshots::load(bytes, keyspace, options);
}

std::string mixed_snapshot(size_t long_value_bytes) {
  Keyspace keyspace(4, 1);
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    const auto database = static_cast<unsigned>(random() % 4);
    const std::string name = fmt::format("key:{}", i);
    const auto key = keyspace.ref(name);
    auto& entry = core::keyspace::upsert(keyspace, database, key, core::keyspace::kIgnoreExpiry);
    if (i % 10 == 0) {
      const auto layout = filters::kLayouts[random() % filters::kLayouts.size()];
      entry.set_filter(filters::make(filters::parameters(layout, 1 + random() % 2000, 0.01), "item",
                                     static_cast<int>(random() % 50)));
    } else {
      const size_t size = i == 7 ? long_value_bytes : random() % 2000;
      EXPECT_TRUE(entry.set_string(std::string(size, static_cast<char>('a' + i % 3))));
    }
    if (i % 3 == 0) keyspace.set_expiry(database, key, entry, 4102444800000 + i);
  }
  std::string bytes;
  StringSink sink(bytes);
  RdbWriteOptions options;
  // Compression is off if the snapshot has a long value, so that this value is also long in the
  // file.
  options.compresses = long_value_bytes == 0;
  EXPECT_TRUE(write_rdb(sink, keyspace, options));
  return bytes;
}

TEST(RdbDecoders, SnapshotReadByManyThreadsIsEqual) {
  for (const size_t long_value_bytes : {size_t{0}, size_t{17} << 20}) {
    const std::string bytes = mixed_snapshot(long_value_bytes);
    Keyspace alone(4, 1);
    const auto one = load_with(1, bytes, alone);
    ASSERT_TRUE(one) << one.error().message;
    const auto expected = snapshots::contents(alone);
    for (const unsigned thread_count : {2U, 5U}) {
      Keyspace keyspace(4, 1);
      const auto read = load_with(thread_count, bytes, keyspace);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->total.keys, one->total.keys);
      EXPECT_EQ(read->total.bytes, bytes.size());
      EXPECT_EQ(snapshots::contents(keyspace), expected);
      EXPECT_EQ(keyspace.expires_count(0), alone.expires_count(0));
    }
  }
}

TEST(RdbDecoders, ForeignFilesReadByManyThreadsAreEqual) {
  for (const std::string file : {"redisbloom/dump.rdb", "redisbloom/mixed-types.rdb",
                                 "valkey-bloom/dump.rdb", "valkey-bloom/mixed-types.rdb"}) {
    SCOPED_TRACE(file);
    const std::string bytes = vectors::read(file);
    Keyspace alone(4, 1);
    Keyspace keyspace(4, 1);
    const auto one = load_with(1, bytes, alone);
    const auto read = load_with(4, bytes, keyspace);
    ASSERT_TRUE(one && read);
    EXPECT_EQ(read->total.keys, one->total.keys);
    EXPECT_EQ(snapshots::contents(keyspace), snapshots::contents(alone));
  }
}

// Several threads must reject a damaged file if and only if one thread rejects it.
TEST(RdbDecoders, ManyThreadsRejectTheSameDamage) {
  constexpr int kDamages = support::rounds(300, 60);
  const std::string whole = vectors::read("redisbloom/dump.rdb");
  std::mt19937_64 random(9);
  int refused = 0;
  for (int i = 0; i < kDamages; ++i) {
    std::string damaged = whole;
    if (i % 3 == 0) damaged.resize(random() % whole.size());
    if (i % 3 != 0) damaged[random() % damaged.size()] ^= static_cast<char>(1U << random() % 8);
    // Without a checksum, the reader detects damage only if the damage makes a field invalid.
    if (i % 3 == 2) damaged.replace(damaged.size() - 8, 8, 8, '\0');
    Keyspace alone(4, 1);
    Keyspace keyspace(4, 1);
    const bool one = static_cast<bool>(load_with(1, damaged, alone));
    const bool many = static_cast<bool>(load_with(3, damaged, keyspace));
    EXPECT_EQ(one, many) << i;
    if (one && many) {
      EXPECT_EQ(snapshots::contents(keyspace), snapshots::contents(alone));
    }
    refused += one ? 0 : 1;
  }
  EXPECT_GT(refused, kDamages * 2 / 3);
}

TEST(RdbDecoders, DuplicateKeyIsRejected) {
  snapshots::Container container;
  for (int i = 0; i < 2000; ++i) container.string_key(fmt::format("{}", i), std::string(300, 'v'));
  container.string_key("1000", "again");
  Keyspace keyspace(1, 1);
  const auto read = load_with(3, container.sealed(), keyspace);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("occurs twice"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace persistence
