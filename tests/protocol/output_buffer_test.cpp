// SPDX-License-Identifier: MIT
#include "protocol/output_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace {

using protocol::OutputBuffer;

TEST(OutputBufferTest, AppendedBytesComeBackInOrder) {
  OutputBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.view(), "");
  buffer.append("");
  EXPECT_EQ(buffer.capacity(), 0u);
  buffer.append("ab");
  buffer.append("c");
  EXPECT_EQ(buffer.view(), "abc");
  buffer.consume(1);
  EXPECT_EQ(buffer.view(), "bc");
  buffer.consume(2);
  EXPECT_TRUE(buffer.empty());
}

TEST(OutputBufferTest, ReserveKeepsTheBytesInPlace) {
  OutputBuffer buffer;
  buffer.reserve(10000);
  const char* const before = buffer.data();
  buffer.append(std::string(10000, 'x'));
  EXPECT_EQ(buffer.data(), before);
}

TEST(OutputBufferTest, TruncateRemovesAPartialReply) {
  OutputBuffer buffer;
  buffer.append("gone");
  buffer.append("kept");
  buffer.consume(4);
  const size_t mark = buffer.mark();
  buffer.append(std::string(5000, 'x'));
  buffer.truncate(mark);
  EXPECT_EQ(buffer.view(), "kept");
}

TEST(OutputBufferTest, ShrinkFreesMemory) {
  OutputBuffer buffer;
  buffer.append(std::string(100000, 'x'));
  buffer.consume(99990);
  buffer.shrink(64);
  EXPECT_EQ(buffer.view(), std::string(10, 'x'));
  EXPECT_EQ(buffer.capacity(), 64u);
  buffer.clear();
  buffer.shrink();
  EXPECT_EQ(buffer.capacity(), 0u);
  buffer.append("again");
  EXPECT_EQ(buffer.view(), "again");
}

TEST(OutputBufferTest, SlowConsumerDoesNotLetItGrowWithoutBound) {
  OutputBuffer buffer;
  buffer.append(std::string(1000, 'x'));
  for (int i = 0; i < 10000; ++i) {
    buffer.append(std::string(100, 'y'));
    buffer.consume(100);
  }
  EXPECT_EQ(buffer.size(), 1000u);
  EXPECT_LE(buffer.capacity(), 8192u);
}

TEST(OutputBufferTest, MovingLeavesAnEmptyBuffer) {
  OutputBuffer first;
  first.append("abc");
  OutputBuffer second(std::move(first));
  EXPECT_EQ(second.view(), "abc");
  OutputBuffer third;
  third.append("old");
  third = std::move(second);
  EXPECT_EQ(third.view(), "abc");
}

TEST(OutputBufferTest, NoBytesAreStoredBeyondTheLimit) {
  OutputBuffer buffer;
  buffer.append("before");
  const size_t mark = buffer.mark();
  buffer.set_limit(1000);
  EXPECT_EQ(buffer.room(), 994u);
  buffer.append(std::string(900, 'x'));
  EXPECT_FALSE(buffer.has_overflowed());
  EXPECT_FALSE(buffer.reserve(size_t{1} << 40)) << "dropped bytes need no memory";
  EXPECT_TRUE(buffer.has_overflowed());
  for (int i = 0; i < 1000; ++i) buffer.append(std::string(5000, 'y'));
  for (int i = 0; i < 1000; ++i) {
    std::fill_n(buffer.prepare(500), 500, 'z');
    buffer.commit(500);
  }
  EXPECT_LT(buffer.capacity(), 16384u);
  EXPECT_GT(buffer.size(), mark);
  EXPECT_EQ(buffer.view().substr(0, mark), "before");
  buffer.truncate(mark);
  EXPECT_FALSE(buffer.has_overflowed());
  EXPECT_EQ(buffer.view(), "before");
  buffer.append(std::string(900, 'x'));
  EXPECT_EQ(buffer.view(), "before" + std::string(900, 'x'));
}

TEST(OutputBufferTest, AMarkOfDroppedBytesKeepsTheOverflow) {
  OutputBuffer buffer;
  buffer.set_limit(10);
  EXPECT_FALSE(buffer.reserve(10)) << "the size must stay below the limit";
  const size_t mark = buffer.mark();
  buffer.append(std::string(100, 'x'));
  buffer.truncate(mark);
  EXPECT_TRUE(buffer.has_overflowed());
  buffer.truncate(0);
  EXPECT_FALSE(buffer.has_overflowed());
  buffer.append("nine byte");
  EXPECT_EQ(buffer.view(), "nine byte");
}

TEST(OutputBufferTest, OverflowDropsFurtherBytes) {
  OutputBuffer buffer;
  buffer.append("a");
  buffer.overflow();
  buffer.append(std::string(10000, 'x'));
  EXPECT_TRUE(buffer.has_overflowed());
  EXPECT_LT(buffer.size(), 10000u);
}

TEST(OutputBufferTest, ShrinkKeepsTheOverflow) {
  OutputBuffer buffer;
  buffer.append(std::string(10000, 'x'));
  buffer.consume(9990);
  const size_t mark = buffer.mark();
  buffer.overflow();
  buffer.shrink();
  std::fill_n(buffer.prepare(500), 500, 'z');
  buffer.commit(500);
  EXPECT_TRUE(buffer.has_overflowed());
  EXPECT_LE(buffer.size(), mark + 501);
  buffer.truncate(mark);
  EXPECT_FALSE(buffer.has_overflowed());
  EXPECT_EQ(buffer.view(), std::string(10, 'x'));
}

TEST(OutputBufferTest, LargeContentSurvivesGrowthAndConsumption) {
  constexpr size_t kPiece = size_t{5} << 20;
  OutputBuffer buffer;
  for (char c = 'a'; c < 'l'; ++c) buffer.append(std::string(kPiece, c));
  buffer.consume(kPiece / 2);
  buffer.append("end");
  OutputBuffer other;
  other.append("old");
  other.swap(buffer);
  EXPECT_EQ(buffer.view(), "old");
  ASSERT_EQ(other.size(), 11 * kPiece - kPiece / 2 + 3);
  EXPECT_EQ(other.view().substr(0, 3), "aaa");
  EXPECT_EQ(other.view()[kPiece / 2], 'b');
  EXPECT_EQ(other.view().substr(other.size() - 4), "kend");
  other.consume(other.size() - 3);
  other.shrink();
  EXPECT_EQ(other.view(), "end");
  EXPECT_EQ(other.capacity(), 3u);
}

TEST(OutputBufferTest, BehavesAsAString) {
  constexpr uint32_t kSeed = 7;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  OutputBuffer buffer;
  std::string model;
  for (int step = 0; step < 20000; ++step) {
    switch (random() % 5) {
      case 0: {
        const size_t size = random() % (model.size() + 1);
        buffer.consume(size);
        model.erase(0, size);
        break;
      }
      case 1: {
        const size_t mark = random() % (model.size() + 1);
        buffer.truncate(mark);
        model.resize(mark);
        break;
      }
      case 2:
        if (random() % 10 == 0) buffer.shrink(random() % 500);
        break;
      default: {
        const std::string text(random() % 300, static_cast<char>('a' + random() % 26));
        buffer.append(text);
        model += text;
      }
    }
    ASSERT_EQ(buffer.view(), model) << "seed " << kSeed << " step " << step;
  }
}

}  // namespace
