// SPDX-License-Identifier: MIT
#include "server/replication/stream/backlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/environment.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

constexpr const char* kNotThere = "(not there)";

std::string read(const Backlog& backlog, uint64_t offset, size_t size_max) {
  std::string bytes(size_max, '\0');
  const auto count = backlog.read(offset, bytes);
  if (!count) return kNotThere;
  bytes.resize(*count);
  return bytes;
}

std::string bytes_of(std::mt19937_64& random, size_t size) {
  std::vector<uint64_t> words(size / sizeof(uint64_t) + 1);
  std::ranges::generate(words, std::ref(random));
  return {reinterpret_cast<const char*>(words.data()), size};
}

TEST(Backlog, KeepsNothingBeforeItBegins) {
  Backlog backlog;
  backlog.append("lost");
  EXPECT_FALSE(backlog.is_active());
  EXPECT_EQ(backlog.end_offset(), 0);
  EXPECT_FALSE(backlog.attach(0));
}

TEST(Backlog, ReadsWhatIsThere) {
  Backlog backlog;
  backlog.begin(1000);
  backlog.append("hello ");
  backlog.append("world");
  EXPECT_EQ(backlog.first_offset(), 1000);
  EXPECT_EQ(backlog.end_offset(), 1011);
  EXPECT_EQ(read(backlog, 1000, 100), "hello world");
  EXPECT_EQ(read(backlog, 1004, 3), "o w");
  EXPECT_EQ(read(backlog, 1011, 3), "");
  EXPECT_EQ(read(backlog, 999, 3), kNotThere);
  EXPECT_EQ(read(backlog, 1012, 3), kNotThere);
}

TEST(Backlog, AttachesOnlyWhereItHasTheRest) {
  Backlog backlog;
  backlog.begin(10);
  backlog.append("0123456789");
  EXPECT_FALSE(backlog.attach(9));
  EXPECT_TRUE(backlog.attach(10));
  EXPECT_TRUE(backlog.attach(20));
  EXPECT_FALSE(backlog.attach(21));
}

TEST(Backlog, EndKeepsTheOffset) {
  Backlog backlog;
  backlog.begin(10);
  backlog.append("0123456789");
  backlog.end();
  EXPECT_EQ(backlog.end_offset(), 20);
  EXPECT_FALSE(backlog.is_active());
  EXPECT_FALSE(backlog.attach(20));
  EXPECT_EQ(read(backlog, 15, 5), kNotThere);
}

TEST(Backlog, TellsOfEveryAppend) {
  Backlog backlog;
  int reported = 0;
  backlog.on_append = [&] { ++reported; };
  backlog.append("x");
  EXPECT_EQ(reported, 0);
  backlog.begin(0);
  backlog.append("x");
  EXPECT_EQ(reported, 1);
}

// Compares the backlog with a string of all bytes ever appended.
TEST(Backlog, KeepsItsSizeAndWhatCursorsNeed) {
  std::mt19937_64 random(support::number_of("BLOOMERY_SEED", 1));
  for (int round = 0; round < support::rounds(50, 5); ++round) {
    Backlog backlog;
    const uint64_t begin = random() % 1'000'000;
    const uint64_t size = 1 + random() % 300'000;
    backlog.set_size(size);
    backlog.begin(begin);
    std::string all;
    std::vector<std::pair<Backlog::CursorId, uint64_t>> cursors;
    for (int step = 0; step < 300; ++step) {
      const std::string bytes = bytes_of(random, random() % (random() % 10 == 0 ? 200'000 : 5'000));
      backlog.append(bytes);
      all += bytes;
      uint64_t needed = begin + all.size() - std::min<uint64_t>(all.size(), size);
      if (random() % 20 == 0) {
        const uint64_t at = begin + random() % (all.size() + 1);
        const auto cursor = backlog.attach(at);
        if (cursor) cursors.emplace_back(*cursor, at);
        ASSERT_TRUE(cursor || at < needed);
      }
      for (auto& [cursor, offset] : cursors) {
        if (random() % 4 == 0) continue;
        offset += std::min<uint64_t>(random() % 50'000, begin + all.size() - offset);
        backlog.advance(cursor, offset);
      }
      if (!cursors.empty() && random() % 40 == 0) {
        backlog.detach(cursors.back().first);
        cursors.pop_back();
      }
      for (const auto& [cursor, offset] : cursors) needed = std::min(needed, offset);
      ASSERT_EQ(backlog.end_offset(), begin + all.size());
      ASSERT_LE(backlog.first_offset(), needed);
      // The backlog frees only whole blocks, so it may keep up to 32 KiB more than needed.
      ASSERT_GE(backlog.first_offset() + (32U << 10), needed);
      const uint64_t at = needed + random() % (begin + all.size() - needed + 1);
      const size_t size_max = random() % 300'000;
      ASSERT_EQ(read(backlog, at, size_max), all.substr(at - begin, size_max));
    }
  }
}

TEST(Backlog, CountsWhatSlowReplicasKeep) {
  Backlog backlog;
  constexpr uint64_t kSize = 100'000;
  // The backlog grows and shrinks by blocks of 16 KiB, so the tolerance is a little more than one
  // block.
  constexpr double kTolerance = 20'000;
  backlog.set_size(kSize);
  backlog.begin(1000);
  const std::string bytes(10'000, 'b');
  for (int i = 0; i < 100; ++i) backlog.append(bytes);
  EXPECT_EQ(backlog.replica_bytes(), 0U) << "without a replica";
  const uint64_t from = backlog.end_offset();
  const auto slow = backlog.attach(from);
  for (int i = 0; i < 100; ++i) backlog.append(bytes);
  EXPECT_NEAR(static_cast<double>(backlog.replica_bytes()), 900'000, kTolerance);
  const StreamMemory memory(backlog);
  EXPECT_NEAR(static_cast<double>(memory.backlog_bytes), kSize, kTolerance);
  backlog.advance(*slow, from + 500'000);
  EXPECT_NEAR(static_cast<double>(backlog.replica_bytes()), 400'000, kTolerance);
  backlog.detach(*slow);
  EXPECT_EQ(backlog.replica_bytes(), 0U);
  ASSERT_TRUE(backlog.attach(from + 990'000));
  for (int i = 0; i < 50; ++i) backlog.append(bytes);
  EXPECT_GT(backlog.replica_bytes(), 0U);
  backlog.end();
  EXPECT_EQ(backlog.replica_bytes(), 0U);
}

TEST(Backlog, IsReadWhileItGrows) {
  Backlog backlog;
  backlog.set_size(1);
  backlog.begin(0);
  constexpr uint64_t kTotal = 8 << 20;
  const auto cursor = backlog.attach(0);
  ASSERT_TRUE(cursor);
  std::jthread writer([&] {
    std::string bytes(1021, '\0');
    for (uint64_t at = 0; at < kTotal; at += bytes.size()) {
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((at + i) % 251);
      backlog.append(bytes);
    }
  });
  uint64_t offset = 0;
  while (offset < kTotal) {
    const std::string bytes = read(backlog, offset, 10'000);
    for (size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes[i], static_cast<char>((offset + i) % 251));
    }
    offset += bytes.size();
    backlog.advance(*cursor, offset);
  }
}

}  // namespace
}  // namespace server
