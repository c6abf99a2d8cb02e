// SPDX-License-Identifier: MIT
#include "core/bloom/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/bloom/layouts.h"

namespace core::bloom {
namespace {

struct HashVector {
  const char* item;
  ItemHash murmur_64;
  ItemHash murmur_32;
  ItemHash sip;
};

// The expected hashes are those of real filters of RedisBloom, and of valkey-bloom with a fixed
// seed.
constexpr HashVector kVectors[] = {
    {"",
     {0x1AB11EA5A7B2C56E, 0xBBDDCB5AB56DD547},
     {0x106E08D9, 0x456D9087},
     {0x61EC3BC33753F4D6, 0x0AA4A3954A194204}},
    {"a",
     {0x4292CEE227B9150A, 0x7E9B527031F50C11},
     {0xA2D0B27C, 0x2E36E8B4},
     {0x19807C47E8649714, 0x7244F2736F0FB39A}},
    {"foo",
     {0x822B4F99B121F10D, 0x9D63D52A557F61C2},
     {0x23A256D0, 0x9FBC0655},
     {0x949FE507B41C1BEF, 0xEC2B7174FA3461DA}},
    {"item:0",
     {0xC8C94E90CEDB5F9E, 0x101EBDD9BA342477},
     {0x414AFA42, 0x3CBEDF97},
     {0x4E6D6E30382A1C78, 0xA5D84EE603D2D6C7}},
    {"12345678",
     {0x700BEA34339441C4, 0x94CCCE0994C5C064},
     {0x1430CE0E, 0x72BF120F},
     {0x1461A372870C4A2D, 0xBB8DECC94FC2E305}},
    {"123456789abcdef0",
     {0x21AF6B1A59B91846, 0xF84A8715F46D0BCB},
     {0xCB1D30F4, 0xE8398D06},
     {0x083BBE4FC9A1E422, 0x458CF38D2E0FC48D}},
};

TEST(HashTest, MurmurAndSipHashEqualRealFilters) {
  const auto keys = seed_keys(kFixedSeed);
  for (const HashVector& vector : kVectors) {
    SCOPED_TRACE(vector.item);
    EXPECT_EQ(hash_redisbloom(vector.item), vector.murmur_64);
    EXPECT_EQ(hash_redisbloom_32(vector.item), vector.murmur_32);
    EXPECT_EQ(hash_valkeybloom(vector.item, keys), vector.sip);
  }
}

TEST(HashTest, FixedSeedReadsAsLittleEndianKeys) {
  const std::array<uint64_t, 4> expected = {0xDA1178EA22F50F59, 0xD97B3E3B09D814A7,
                                            0x8788983E738A891D, 0x83330728CD977F30};
  EXPECT_EQ(seed_keys(kFixedSeed), expected);
}

// The native hash is part of the file format: these values must never change.
TEST(HashTest, NativeHashIsFrozen) {
  EXPECT_EQ(hash_native(""), (ItemHash{0x6001C324468D497F, 0x99AA06D3014798D8}));
  EXPECT_EQ(hash_native("foo"), hash_native(std::string("foo")));
  EXPECT_NE(hash_native("foo"), hash_native("fop"));
}

TEST(HashTest, HasherChoosesByLayoutAndSeed) {
  const ItemHasher native(NativeLayout::kId, false, kFixedSeed);
  const ItemHasher redis(RedisBloomLayout::kId, false, kFixedSeed);
  const ItemHasher old_redis(RedisBloomLayout::kId, true, kFixedSeed);
  EXPECT_EQ(native("foo"), hash_native("foo"));
  EXPECT_EQ(redis("foo"), hash_redisbloom("foo"));
  EXPECT_EQ(old_redis("foo"), hash_redisbloom_32("foo"));
  Seed other = kFixedSeed;
  other[31] ^= 1;
  const ItemHash fixed = ItemHasher(ValkeyBloomLayout::kId, false, kFixedSeed)("foo");
  const ItemHash changed = ItemHasher(ValkeyBloomLayout::kId, false, other)("foo");
  EXPECT_EQ(fixed.first, changed.first);
  EXPECT_NE(fixed.second, changed.second);
}

}  // namespace
}  // namespace core::bloom
