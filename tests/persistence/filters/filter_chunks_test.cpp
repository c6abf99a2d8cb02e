// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_chunks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "tests/support/filter_forms.h"
#include "tests/support/sanitized.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using namespace filter_forms;

TEST(FilterChunks, ChunksEqualThoseOfRedisBloom) {
  for (const char* name : {"empty", "nonscaling", "scaled", "tight", "tiny"}) {
    SCOPED_TRACE(name);
    const auto filter = load(vectors::read(fmt::format("redisbloom/dump/{}.bin", name)));
    ASSERT_TRUE(filter);
    const auto file = [&](size_t n) {
      return vectors::read(fmt::format("redisbloom/scandump/{}/{:02}.bin", name, n));
    };
    EXPECT_EQ(encode_chunk_header(**filter), file(0));
    const auto copy = decode_chunk_header(file(0), kUnlimited);
    ASSERT_TRUE(copy) << copy.error().message;
    EXPECT_EQ((*copy)->item_count(), (*filter)->item_count());
    uint64_t position = 0;
    std::string padded;
    for (size_t i = 1; i <= (*filter)->layer_count(); ++i) {
      const std::string chunk = file(i);
      EXPECT_EQ(chunk_at(**filter, position, padded), chunk);
      EXPECT_EQ(load_chunk(**copy, position, chunk), ChunkOutcome::kLoaded);
      position += chunk.size();
    }
    EXPECT_EQ(chunk_at(**filter, position, padded), "");
    EXPECT_EQ(load_chunk(**copy, position, ""), ChunkOutcome::kPastTheEnd);
    EXPECT_EQ(load_chunk(**copy, position - 1, "ab"), ChunkOutcome::kCrossesLayers);
    expect_equal(**filter, **copy);
  }
}

TEST(FilterChunks, EveryLayoutSurvivesChunks) {
  for (const core::bloom::LayoutId layout : filters::kLayouts) {
    for (const bool is_odd : {false, true}) {
      auto parameters = parameters_of(layout, 0.03, is_odd ? 1 : 30, 2);
      parameters.rounds_to_power_of_two = is_odd;
      if (is_odd) parameters.seed[3] ^= 1;
      const auto filter = make(parameters, "c", 90);
      const auto copy = decode_chunk_header(encode_chunk_header(*filter), kUnlimited);
      ASSERT_TRUE(copy) << copy.error().message;
      EXPECT_EQ((*copy)->parameters(), filter->parameters());
      std::string padded;
      for (uint64_t position = 0;;) {
        const std::string_view chunk = chunk_at(*filter, position, padded);
        if (chunk.empty()) break;
        EXPECT_EQ(load_chunk(**copy, position, chunk), ChunkOutcome::kLoaded);
        position += chunk.size();
      }
      expect_equal(*filter, **copy);
    }
  }
}

TEST(FilterChunks, HighCountsOfLayersAreLimited) {
  constexpr uint64_t kMost = core::bloom::kMaxItemCount;
  const auto grown = make(parameters_of(core::bloom::kNativeLayout, 0.01, 100, 2), "g", 900);
  ASSERT_GE(grown->layer_count(), 3U);
  const auto filter = filters::with_item_counts(*grown, kMost);
  EXPECT_EQ(filter->item_count(), kMost);
  const auto copy = decode_chunk_header(encode_chunk_header(*filter), kUnlimited);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->item_count(), kMost);
}

// The chunk header of an empty filter creates the same filter. A replica that runs RedisBloom
// receives BF.RESERVE as such a header.
TEST(FilterChunks, EmptyHeadersGiveTheSameFilter) {
  std::mt19937_64 random(29);
  std::uniform_real_distribution<double> exponents(-60, 0);
  for (int i = 0; i < support::rounds(2000, 300); ++i) {
    const double rate =
        i % 2 == 0 ? std::exp(exponents(random)) : 0.25 / double(1 + random() % 999);
    const uint64_t capacity = 1 + random() % (i % 10 == 0 ? 1'000'000 : 50);
    const auto expansion = static_cast<uint32_t>(random() % 5);
    const auto parameters =
        parameters_of(core::bloom::RedisBloomLayout::kId, rate, capacity, expansion);
    const auto empty = make(parameters, "", 0);
    const std::string header = encode_empty_chunk_header(*empty);
    EXPECT_EQ(header, encode_chunk_header(*empty));
    const auto copy = decode_chunk_header(header, kUnlimited);
    ASSERT_TRUE(copy) << copy.error().message << rate << ' ' << capacity << ' ' << expansion;
    EXPECT_EQ((*copy)->parameters(), empty->parameters());
    expect_equal(*empty, **copy);
    const int item_count = i < 100 && expansion > 0 ? 200 : 0;
    EXPECT_EQ(encode_empty_chunk_header(*make(parameters, "x", item_count)), header);
  }
}

TEST(FilterChunks, HeadersThatLieAreRefused) {
  const std::string good = vectors::read("redisbloom/scandump/tiny/00.bin");
  struct Case {
    const char* what;
    size_t offset;
    std::string bytes;
  };
  const auto number = [](uint64_t value, size_t size) {
    std::string bytes;
    ByteWriter(bytes).u64(value);
    return bytes.substr(0, size);
  };
  const auto real = [](double value) {
    std::string bytes;
    ByteWriter(bytes).f64(value);
    return bytes;
  };
  const Case cases[] = {
      {"another total", 0, number(49, 8)},
      {"no layers", 8, number(0, 4)},
      {"more layers than bytes", 8, number(0xFFFFFFFF, 4)},
      {"unknown options", 12, number(64, 4)},
      {"growth 0", 16, number(0, 4)},
      {"an array of 2^50 bytes", 20, number(uint64_t{1} << 50, 8)},
      {"an array size whose bits overflow", 20, number(uint64_t{1} << 61, 8)},
      {"other bits", 28, number(1153, 8)},
      {"more items than capacity", 36, number(101, 8)},
      {"rate NaN", 44, real(std::nan(""))},
      {"rate 0", 44, real(0)},
      {"rate 1", 44, real(1)},
      {"bits per item infinite", 52, real(std::numeric_limits<double>::infinity())},
      {"no hashes", 60, number(0, 4)},
      {"1e8 hashes", 60, number(100000000, 4)},
      {"capacity 0", 64, number(0, 8)},
      {"capacity 2^63", 64, number(uint64_t{1} << 63, 8)},
      {"an exponent under NOROUND", 72, number(10, 1)},
  };
  for (const Case& c : cases) {
    std::string header = good;
    header.replace(c.offset, c.bytes.size(), c.bytes);
    EXPECT_FALSE(decode_chunk_header(header, kUnlimited)) << c.what;
  }
  // A header that is truncated to 69 bytes may be accepted, because it looks like a header of
  // RedisBloom 2.2, which has 32-bit capacities.
  constexpr size_t kOldSize = 69;
  for (size_t size = 0; size < good.size(); ++size) {
    if (size == kOldSize) continue;
    EXPECT_FALSE(decode_chunk_header(good.substr(0, size), kUnlimited)) << size;
  }
  EXPECT_FALSE(decode_chunk_header(good + "x", kUnlimited));
}

}  // namespace
}  // namespace persistence
