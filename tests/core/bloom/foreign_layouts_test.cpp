// SPDX-License-Identifier: MIT
//
// Compares the redisbloom and valkey-bloom layouts with values measured on real servers.
#include <gtest/gtest.h>

#include <vector>

#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/valkeybloom_layout.h"

namespace core::bloom {
namespace {

struct SizeCase {
  uint64_t capacity;
  double error_rate;
  uint64_t size_bytes;
  unsigned hash_count;
};

TEST(RedisBloomLayoutTest, SizesEqualRealFilters) {
  const SizeCase cases[] = {
      {1, 0.005, 8, 8},           {1, 0.125, 8, 4},        {100, 0.005, 144, 8},
      {200, 0.0025, 312, 9},      {400, 0.00125, 696, 10}, {1000, 0.001, 1800, 10},
      {200000, 5e-5, 515328, 15}, {100, 0.01, 120, 7},     {3, 0.01, 8, 7},
      {50000, 5e-4, 98880, 11},   {1000, 0.025, 960, 6},   {300000000, 5e-7, 1132420136, 21},
      {100, 0.25, 40, 3},         {1, 5e-324, 200, 1075}};
  for (const SizeCase& size : cases) {
    const auto geometry = RedisBloomLayout::size(size.capacity, size.error_rate);
    ASSERT_TRUE(geometry) << size.capacity << " at " << size.error_rate;
    EXPECT_EQ(geometry->bit_count, size.size_bytes * 8) << size.capacity;
    EXPECT_EQ(geometry->hash_count, size.hash_count) << size.capacity;
  }
}

TEST(RedisBloomLayoutTest, RoundedFormFillsUpToPowerOfTwo) {
  const auto plan = RedisBloomLayout::size_rounded(100, 0.01);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->geometry.bit_count, 1024U);
  EXPECT_EQ(plan->geometry.hash_count, 7U);
  EXPECT_TRUE(plan->geometry.is_rounded);
  // Rounding up to 1024 bits gives room for trunc((1024 - 958.5) / 9.585) = 6 more items.
  EXPECT_EQ(plan->capacity, 106U);
}

TEST(ValkeyBloomLayoutTest, SizesEqualRealFilters) {
  const SizeCase cases[] = {{1, 0.01, 2, 11},        {10, 0.01, 12, 7},
                            {10, 0.25, 4, 2},        {100, 0.01, 120, 7},
                            {200, 0.005, 276, 8},    {400, 0.0025, 624, 9},
                            {1000, 0.001, 1798, 10}, {100000, 0.001, 179720, 10}};
  for (const SizeCase& size : cases) {
    const auto geometry = ValkeyBloomLayout::size(size.capacity, size.error_rate);
    ASSERT_TRUE(geometry) << size.capacity << " at " << size.error_rate;
    EXPECT_EQ(geometry->bit_count, size.size_bytes * 8) << size.capacity;
    EXPECT_EQ(geometry->hash_count, size.hash_count) << size.capacity;
  }
}

struct ProbeCase {
  const char* item;
  std::vector<uint64_t> bits;
};

template <class Probes>
std::vector<uint64_t> probes_of(ItemHash hash, uint64_t bit_count, unsigned hash_count) {
  Probes probes(hash, Geometry{bit_count, static_cast<uint16_t>(hash_count), 0, false});
  std::vector<uint64_t> bits;
  for (unsigned i = 0; i < hash_count; ++i) bits.push_back(probes.next());
  return bits;
}

TEST(RedisBloomLayoutTest, ProbesEqualRealFilters) {
  const ProbeCase cases[] = {{"a", {1034, 539, 172, 829, 462, 1119, 752, 257}},
                             {"foo", {269, 847, 145, 723, 21, 599, 25, 475}},
                             {"item:0", {926, 1045, 12, 131, 378, 497, 616, 735}}};
  for (const ProbeCase& probe : cases) {
    EXPECT_EQ(probes_of<RedisBloomProbes>(hash_redisbloom(probe.item), 1152, 8), probe.bits);
  }
  const ProbeCase tiny[] = {{"a", {10, 27, 44, 61, 14, 31, 48}},
                            {"foo", {13, 15, 17, 19, 21, 23, 25}},
                            {"item:0", {30, 21, 12, 3, 58, 49, 40}}};
  for (const ProbeCase& probe : tiny) {
    EXPECT_EQ(probes_of<RedisBloomProbes>(hash_redisbloom(probe.item), 64, 7), probe.bits);
  }
}

TEST(RedisBloomLayoutTest, OldFormsProbeAsRealFiltersDid) {
  const ProbeCase rounded[] = {{"a", {266, 283, 300, 317, 334, 351, 368}},
                               {"foo", {269, 719, 145, 595, 21, 471, 921}},
                               {"item:0", {926, 21, 140, 259, 378, 497, 616}}};
  for (const ProbeCase& probe : rounded) {
    EXPECT_EQ(probes_of<RedisBloomProbes>(hash_redisbloom(probe.item), 1024, 7), probe.bits);
  }
  const ProbeCase rounded_32[] = {{"a", {636, 816, 996, 152, 332, 512, 692}},
                                  {"foo", {720, 293, 890, 463, 36, 633, 206}},
                                  {"item:0", {578, 473, 368, 263, 158, 53, 972}}};
  for (const ProbeCase& probe : rounded_32) {
    EXPECT_EQ(probes_of<RedisBloomProbes>(hash_redisbloom_32(probe.item), 1024, 7), probe.bits);
  }
  const ProbeCase plain_32[] = {{"a", {252, 944, 676, 408, 140, 832, 564}},
                                {"foo", {656, 869, 122, 335, 548, 761, 14}},
                                {"item:0", {770, 89, 368, 647, 926, 245, 524}}};
  for (const ProbeCase& probe : plain_32) {
    EXPECT_EQ(probes_of<RedisBloomProbes>(hash_redisbloom_32(probe.item), 960, 7), probe.bits);
  }
}

TEST(ValkeyBloomLayoutTest, ProbesEqualRealFilters) {
  const auto keys = seed_keys(kFixedSeed);
  const ProbeCase cases[] = {{"a", {20, 26, 72, 34, 60, 22, 48}},
                             {"foo", {15, 90, 67, 93, 23, 49, 75}},
                             {"item:0", {24, 7, 70, 13, 20, 59, 2}}};
  for (const ProbeCase& probe : cases) {
    EXPECT_EQ(probes_of<ValkeyBloomProbes>(hash_valkeybloom(probe.item, keys), 96, 7), probe.bits);
  }
}

}  // namespace
}  // namespace core::bloom
