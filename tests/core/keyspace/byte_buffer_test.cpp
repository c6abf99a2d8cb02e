// SPDX-License-Identifier: MIT
#include "core/keyspace/byte_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace core::keyspace {
namespace {

TEST(ByteBufferTest, FollowsAStringThroughRandomChanges) {
  constexpr uint64_t kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  ByteBuffer buffer;
  std::string model;
  for (int i = 0; i < 3000; ++i) {
    const size_t size = random() % (i % 50 == 0 ? 1000000 : 600);
    switch (random() % 4) {
      case 0:
        ASSERT_TRUE(buffer.append(std::string(size, static_cast<char>('a' + i % 26))));
        model.append(size, static_cast<char>('a' + i % 26));
        break;
      case 1:
        ASSERT_TRUE(buffer.resize_zeroed(model.size() + size));
        model.resize(model.size() + size, '\0');
        break;
      case 2:
        model.resize(std::min(model.size(), size));
        buffer.shrink(model.size());
        break;
      default:
        ASSERT_TRUE(buffer.assign(std::string(size, 'x')));
        model.assign(size, 'x');
    }
    ASSERT_EQ(buffer.view(), model);
  }
}

TEST(ByteBufferTest, RejectsSizesBeyondMemory) {
  ByteBuffer buffer;
  ASSERT_TRUE(buffer.assign("kept"));
  EXPECT_FALSE(buffer.resize_zeroed(size_t{1} << 60));
  EXPECT_FALSE(buffer.resize_zeroed(ByteBuffer::kSizeMax + 1));
  EXPECT_EQ(buffer.view(), "kept");
}

TEST(ByteBufferTest, GrowsForOverwritingAndShrinks) {
  ByteBuffer buffer;
  ASSERT_TRUE(buffer.assign("kept"));
  for (const size_t size : {size_t{5}, size_t{1000}, size_t{3} << 20}) {
    ASSERT_TRUE(buffer.resize_for_overwrite(size));
    ASSERT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.view().substr(0, 4), "kept");
    std::fill_n(buffer.data() + 4, size - 4, 'x');
  }
  ASSERT_TRUE(buffer.resize_for_overwrite(6));
  EXPECT_EQ(buffer.view(), "keptxx");
  EXPECT_FALSE(buffer.resize_for_overwrite(ByteBuffer::kSizeMax + 1));
  EXPECT_EQ(buffer.view(), "keptxx");
  ASSERT_TRUE(buffer.resize_for_overwrite(0));
  EXPECT_TRUE(buffer.view().empty());
}

TEST(ByteBufferTest, GrowthMayNeedAWholeNewBlock) {
  constexpr size_t kOld = size_t{1} << 20;
  EXPECT_EQ(ByteBuffer::growth_bytes(kOld, kOld), 0U);
  EXPECT_EQ(ByteBuffer::growth_bytes(kOld, kOld + 1000), 1000U);
  EXPECT_EQ(ByteBuffer::growth_bytes(kOld, 2 * kOld), 2 * kOld) << "beside the old one";
}

// The test is excluded under sanitizers, which allocate shadow memory for the whole size.
#if !defined(BLOOMERY_ASAN) && !defined(BLOOMERY_TSAN)
TEST(ByteBufferTest, GrowsBeyondFourGibibytesWithoutTouchingThem) {
  constexpr size_t kSize = (size_t{1} << 32) + 12345;
  ByteBuffer buffer;
  ASSERT_TRUE(buffer.assign("head"));
  ASSERT_TRUE(buffer.resize_zeroed(kSize));
  EXPECT_EQ(buffer.size(), kSize);
  EXPECT_EQ(std::string_view(buffer.data(), 5), std::string_view("head\0", 5));
  EXPECT_EQ(buffer.data()[kSize - 1], '\0');
}
#endif

TEST(ByteBufferTest, MovesWithoutCopying) {
  ByteBuffer first;
  ASSERT_TRUE(first.assign("content"));
  const char* data = first.data();
  ByteBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  ByteBuffer third;
  third = std::move(second);
  EXPECT_EQ(third.view(), "content");
}

}  // namespace
}  // namespace core::keyspace
