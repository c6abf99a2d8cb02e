// SPDX-License-Identifier: MIT
#include "persistence/filters/redisbloom_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/bloom/redisbloom_layout.h"
#include "persistence/bytes/module_value.h"
#include "tests/support/filter_forms.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using namespace filter_forms;

TEST(RedisBloomCodec, OldFormsOfRedisBloomKeepTheirModulus) {
  for (const bool hashes_32_bits : {false, true}) {
    for (const uint64_t capacity : {1, 2, 10, 100, 1000}) {
      auto parameters = parameters_of(RedisBloomLayout::kId, 0.02, capacity, 2);
      parameters.hashes_32_bits = hashes_32_bits;
      parameters.rounds_to_power_of_two = true;
      const auto filter = make(parameters, "old", 150);
      const auto loaded = load(payload_of(*filter, Packing::kNever));
      ASSERT_TRUE(loaded) << loaded.error().message << " " << capacity;
      // The bit count is rounded up to a power of two, so the filter can hold more items than its
      // requested capacity. The stored capacity includes these additional items.
      parameters.capacity = filter->layer_info(0).capacity;
      EXPECT_EQ((*loaded)->parameters(), parameters);
      expect_equal(*filter, **loaded);
      for (int i = 0; i < 150; ++i) EXPECT_TRUE((*loaded)->may_contain(fmt::format("old:{}", i)));
    }
  }
}

// A value of RedisBloom 2.0: encoding 3, without growth and without a bit count.
TEST(RedisBloomCodec, VersionThreeWithoutABitCountIsRead) {
  std::string payload(1, static_cast<char>(kModuleType));
  ByteWriter writer(payload);
  ModuleWriter out(writer, module_id("MBbloom--", 3));
  const double bits_per_item = 9.585058377367446;
  out.unsigned_number(0);
  out.unsigned_number(1);
  out.unsigned_number(4);
  out.unsigned_number(106);
  out.real_number(0.01);
  out.unsigned_number(7);
  out.real_number(bits_per_item);
  out.unsigned_number(0);
  out.unsigned_number(10);
  out.string(std::string(128, '\0'), Packing::kNever);
  out.unsigned_number(0);
  out.end();
  append_dump_footer(payload);
  const auto filter = load(payload);
  ASSERT_TRUE(filter) << filter.error().message;
  EXPECT_EQ((*filter)->layer_info(0).geometry.bit_count, 1024U);
  (*filter)->add("a", kUnlimited);
  for (const int bit : {266, 283, 300, 317, 334, 351, 368}) {
    const std::byte byte = (*filter)->layer_bits(0).bytes()[static_cast<size_t>(bit / 8)];
    EXPECT_NE(byte & static_cast<std::byte>(1 << bit % 8), std::byte{0}) << bit;
  }
}

// At an error rate of 1/16, rounding decides between four and five hashes. Machines round
// differently, so both hash counts must be accepted.
TEST(RedisBloomCodec, RatesBetweenTwoHashCountsAllowEither) {
  auto parameters = parameters_of(RedisBloomLayout::kId, 0.125, 100, 2);
  const std::string honest = encode_chunk_header(*make(parameters, "b", 0));
  int taken = 0;
  for (const double rate_step : {-1e-14, -1e-16, 0.0, 1e-16, 1e-14}) {
    for (const double bits_step : {-1e-14, -2e-16, 0.0, 2e-16, 1e-14}) {
      for (const char hashes : {3, 4, 5, 6}) {
        const double rate = 0.0625 * (1 + rate_step);
        std::string header = honest;
        overwrite(header, kRateAt, rate);
        overwrite(header, kBitsPerItemAt, RedisBloomLayout::bits_per_item(rate) * (1 + bits_step));
        header[kHashesAt] = hashes;
        const auto filter = decode_chunk_header(header, kMebibyte);
        ASSERT_EQ(filter.has_value(), hashes == 4 || hashes == 5) << int(hashes);
        if (!filter) continue;
        expect_same_in_every_form(**filter);
        ++taken;
        // When RedisBloom loads this chunk header, it computes the hash count from the bits per
        // item. It rejects the header if the stored hash count differs.
        const std::string again = encode_chunk_header(**filter);
        ByteReader reader(std::string_view(again).substr(kBitsPerItemAt));
        EXPECT_EQ(std::ceil(0.693147180559945 * reader.f64()), hashes);
      }
    }
  }
  EXPECT_EQ(taken, 50);
}

// RedisBloom stores a growth factor even for a filter that never grows.
TEST(RedisBloomCodec, GrowthOfAFixedFilterIsKept) {
  const std::string usual = vectors::read("redisbloom/dump/nonscaling.bin");
  const std::string_view body = std::string_view(usual).substr(1, usual.size() - 11);
  const size_t at = body.find(std::string_view("\x02\x0D\x02\x02", 4)) + 3;
  for (const char growth : {0, 1, 2, 7}) {
    std::string value(body);
    value[at] = growth;
    const auto filter = read_value(value);
    ASSERT_TRUE(filter) << filter.error().message;
    std::string written;
    ByteWriter writer(written);
    encode_filter(writer, **filter, Packing::kIfSmaller);
    EXPECT_EQ(written, value);
    EXPECT_EQ(encode_chunk_header(**filter)[16], growth);
    EXPECT_EQ(encode_chunk_header(*(*filter)->clone())[16], growth);
    EXPECT_FALSE((*filter)->is_scaling());
    expect_same_in_every_form(**filter);
  }
}

// Before Redis 8, RedisBloom accepted every growth factor.
TEST(RedisBloomCodec, LargeGrowthIsKept) {
  for (const uint32_t growth : {32'768U, 40'000U, 4'294'967'295U}) {
    for (const bool is_scaling : {true, false}) {
      core::bloom::FilterParameters parameters;
      EXPECT_TRUE(read_redisbloom_options(is_scaling ? 5 : 13, growth, parameters));
      EXPECT_EQ(parameters.is_scaling(), is_scaling);
      EXPECT_EQ(redisbloom_growth_of(parameters), growth);
    }
  }
  core::bloom::FilterParameters parameters;
  EXPECT_FALSE(read_redisbloom_options(5, uint64_t{1} << 32, parameters));
}

}  // namespace
}  // namespace persistence
