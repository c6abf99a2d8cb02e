// SPDX-License-Identifier: MIT
#include "protocol/output_buffer.h"

#include <gtest/gtest.h>

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

TEST(OutputBufferTest, TruncateTakesAPartialReplyBack) {
  OutputBuffer buffer;
  buffer.append("gone");
  buffer.append("kept");
  buffer.consume(4);
  const size_t mark = buffer.mark();
  buffer.append(std::string(5000, 'x'));
  buffer.truncate(mark);
  EXPECT_EQ(buffer.view(), "kept");
}

TEST(OutputBufferTest, ShrinkGivesMemoryBack) {
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
