// SPDX-License-Identifier: MIT
#include "core/bloom/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cassert>
#include <cstring>

#include "core/bloom/layouts.h"

namespace core::bloom {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as little-endian");

constexpr uint64_t kMurmur64Seed = 0xC6A4A7935BD1E995;
constexpr uint32_t kMurmur32Seed = 0x9747B28C;

template <class Word>
Word load_word(const char* data) {
  Word word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// Loads the last bytes, fewer than a word, as a little-endian number.
uint64_t load_tail(const char* data, size_t length) {
  uint64_t word = 0;
  for (size_t i = 0; i < length; ++i) word |= uint64_t{static_cast<uint8_t>(data[i])} << (8 * i);
  return word;
}

uint64_t murmur_64a(std::string_view item, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xC6A4A7935BD1E995;
  const char* data = item.data();
  const size_t block_bytes = item.size() & ~size_t{7};
  uint64_t hash = seed ^ (item.size() * kMultiplier);
  for (size_t i = 0; i < block_bytes; i += 8) {
    uint64_t block = load_word<uint64_t>(data + i) * kMultiplier;
    block ^= block >> 47;
    hash = (hash ^ block * kMultiplier) * kMultiplier;
  }
  if (block_bytes != item.size()) {
    hash = (hash ^ load_tail(data + block_bytes, item.size() - block_bytes)) * kMultiplier;
  }
  hash = (hash ^ (hash >> 47)) * kMultiplier;
  return hash ^ (hash >> 47);
}

uint32_t murmur_32(std::string_view item, uint32_t seed) {
  constexpr uint32_t kMultiplier = 0x5BD1E995;
  const char* data = item.data();
  const size_t block_bytes = item.size() & ~size_t{3};
  uint32_t hash = seed ^ static_cast<uint32_t>(item.size());
  for (size_t i = 0; i < block_bytes; i += 4) {
    uint32_t block = load_word<uint32_t>(data + i) * kMultiplier;
    block ^= block >> 24;
    hash = (hash * kMultiplier) ^ (block * kMultiplier);
  }
  if (block_bytes != item.size()) {
    const uint64_t tail = load_tail(data + block_bytes, item.size() - block_bytes);
    hash = (hash ^ static_cast<uint32_t>(tail)) * kMultiplier;
  }
  hash = (hash ^ (hash >> 13)) * kMultiplier;
  return hash ^ (hash >> 15);
}

// SipHash-1-3 over the item's length in eight bytes, followed by the item. Rust hashes slices this
// way, and valkey-bloom hashes its items as slices.
class SipHash13 {
 public:
  SipHash13(uint64_t key0, uint64_t key1)
      : v0_(key0 ^ 0x736f6d6570736575),
        v1_(key1 ^ 0x646f72616e646f6d),
        v2_(key0 ^ 0x6c7967656e657261),
        v3_(key1 ^ 0x7465646279746573) {}

  uint64_t hash_slice(std::string_view item) {
    const size_t block_bytes = item.size() & ~size_t{7};
    compress(item.size());
    for (size_t i = 0; i < block_bytes; i += 8) compress(load_word<uint64_t>(item.data() + i));
    const uint64_t message_length = item.size() + 8;
    const uint64_t tail = load_tail(item.data() + block_bytes, item.size() - block_bytes);
    compress(tail | message_length << 56);
    v2_ ^= 0xFF;
    for (int i = 0; i < 3; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void compress(uint64_t block) {
    v3_ ^= block;
    round();
    v0_ ^= block;
  }

  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

ItemHash hash_native(std::string_view item) {
  const XXH128_hash_t hash = XXH3_128bits(item.data(), item.size());
  return {hash.low64, hash.high64};
}

[[gnu::flatten]] ItemHash hash_lanes(std::string_view item) {
  return {XXH3_64bits(item.data(), item.size()), 0};
}

ItemHash hash_redisbloom(std::string_view item) {
  const uint64_t first = murmur_64a(item, kMurmur64Seed);
  return {first, murmur_64a(item, first)};
}

ItemHash hash_redisbloom_32(std::string_view item) {
  const uint32_t first = murmur_32(item, kMurmur32Seed);
  return {first, murmur_32(item, first)};
}

ItemHash hash_valkeybloom(std::string_view item, const std::array<uint64_t, 4>& keys) {
  return {SipHash13(keys[0], keys[1]).hash_slice(item),
          SipHash13(keys[2], keys[3]).hash_slice(item)};
}

std::array<uint64_t, 4> seed_keys(const Seed& seed) {
  std::array<uint64_t, 4> keys;
  std::memcpy(keys.data(), seed.data(), sizeof(keys));
  return keys;
}

ItemHasher::ItemHasher(LayoutId layout, bool hashes_32_bits, const Seed& seed)
    : layout_(layout), settings_{hashes_32_bits, seed_keys(seed)} {}

ItemHash ItemHasher::operator()(std::string_view item) const {
  return with_layout(layout_, [&]<class Layout>() { return Layout::hash(item, settings_); });
}

// `flatten` inlines the hash functions into the loops; a call per item would take about as long as
// hashing a short item.
[[gnu::flatten]] void ItemHasher::operator()(std::span<const std::string_view> items,
                                             std::span<ItemHash> hashes) const {
  assert(hashes.size() >= items.size());
  with_layout(layout_, [&]<class Layout>() {
    for (size_t i = 0; i < items.size(); ++i) hashes[i] = Layout::hash(items[i], settings_);
  });
}

}  // namespace core::bloom
