// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/fingerprint_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/bloom/fingerprint_layout.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

constexpr uint64_t kSlotsSeed = 20261123;
constexpr uint64_t kLines = 3;

// Naive model of the table, with one number per slot. The array that words() returns has no bytes
// after the last line, so that a sanitizer detects reads beyond this line.
class SlowTable {
 public:
  explicit SlowTable(const Geometry& geometry)
      : slots_per_bucket_(geometry.hash_count),
        bits_(geometry.cell_bits),
        buckets_per_line_(kLineBits / (slots_per_bucket_ * bits_)),
        buckets_(kLines * buckets_per_line_ / 2 * 2, std::vector<uint64_t>(slots_per_bucket_)) {}

  size_t bucket_count() const { return buckets_.size(); }
  uint64_t& slot(uint64_t bucket, unsigned slot) { return buckets_[bucket][slot]; }

  bool holds(uint64_t first, uint64_t second, uint64_t fingerprint) const {
    return std::ranges::count(buckets_[first], fingerprint) != 0 ||
           std::ranges::count(buckets_[second], fingerprint) != 0;
  }
  // Searches the buckets `in` for the value `before`, in their order. Replaces the first such value
  // by `after`. Returns false if no bucket contains `before`.
  bool replace(std::vector<uint64_t> in, uint64_t before, uint64_t after) {
    for (const uint64_t bucket : in) {
      const auto found = std::ranges::find(buckets_[bucket], before);
      if (found == buckets_[bucket].end()) continue;
      *found = after;
      return true;
    }
    return false;
  }

  // Returns the table in the format of docs/formats.md. The first bucket is in the lowest bits of a
  // line. The first slot is in the lowest bits of a bucket.
  std::vector<uint64_t> words() const {
    std::vector<uint64_t> words(kLines * kLineBits / 64);
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      for (unsigned slot = 0; slot < slots_per_bucket_; ++slot) {
        const uint64_t begin = bucket / buckets_per_line_ * kLineBits +
                               (bucket % buckets_per_line_ * slots_per_bucket_ + slot) * bits_;
        for (unsigned i = 0; i < bits_; ++i) {
          words[(begin + i) / 64] |= (buckets_[bucket][slot] >> i & 1) << (begin + i) % 64;
        }
      }
    }
    return words;
  }

 private:
  unsigned slots_per_bucket_;
  unsigned bits_;
  uint64_t buckets_per_line_;
  std::vector<std::vector<uint64_t>> buckets_;
};

Geometry shape_of(unsigned slots, unsigned bits) {
  Geometry geometry;
  geometry.bit_count = kLines * kLineBits;
  geometry.hash_count = static_cast<uint16_t>(slots);
  geometry.lines_per_lookup = 2;
  geometry.cell_bits = static_cast<uint16_t>(bits);
  return geometry;
}

template <class Function>
void for_each_shape(Function&& function) {
  for (unsigned slots = BucketModel::kSlotsMin; slots <= BucketModel::kSlotsMax; ++slots) {
    for (unsigned bits = BucketModel::kBitsMin; BucketModel::is_shape(slots, bits); ++bits) {
      SCOPED_TRACE(testing::Message() << slots << " slots of " << bits << " bits");
      function(shape_of(slots, bits));
    }
  }
}

TEST(FingerprintTableTest, AgreesWithANaiveTable) {
  std::mt19937_64 random(kSlotsSeed);
  for_each_shape([&](const Geometry& geometry) {
    std::vector<uint64_t> words(kLines * kLineBits / 64);
    SlowTable slow(geometry);
    with_fingerprint_table(words.data(), geometry, [&](const auto& table) {
      ASSERT_EQ(table.bucket_count(), slow.bucket_count());
      for (int i = 0; i < support::rounds(2000, 400); ++i) {
        // Few different fingerprints and buckets, so that they collide.
        const uint64_t fingerprint = table.fingerprint(random() % 16 << 60);
        const uint64_t first = table.bucket(random() % 8 << 61);
        const FingerprintPlaces places = table.places(first, fingerprint);
        const uint64_t second = table.other_bucket(first, fingerprint);
        ASSERT_NE(first, second);
        ASSERT_EQ(table.other_bucket(second, fingerprint), first);
        ASSERT_EQ(table.holds(places), slow.holds(first, second, fingerprint));
        const auto slot = static_cast<unsigned>(random() % table.slot_count());
        switch (random() % 4) {
          case 0:
            ASSERT_EQ(table.exchange(first, slot, fingerprint), slow.slot(first, slot));
            slow.slot(first, slot) = fingerprint;
            break;
          case 1:
            ASSERT_EQ(table.fill_slot(second, fingerprint), slow.replace({second}, 0, fingerprint));
            break;
          default:
            ASSERT_EQ(table.free_slot(places), slow.replace({first, second}, fingerprint, 0));
        }
        ASSERT_EQ(words, slow.words());
      }
    });
  });
}

TEST(FingerprintTableTest, FingerprintsTakeAllValuesExceptZero) {
  for_each_shape([&](const Geometry& geometry) {
    std::vector<uint64_t> words(kLines * kLineBits / 64);
    with_fingerprint_table(words.data(), geometry, [&](const auto& table) {
      EXPECT_EQ(table.fingerprint(0), 1U);
      EXPECT_EQ(table.fingerprint(~uint64_t{0}), (uint64_t{1} << geometry.cell_bits) - 1);
      EXPECT_EQ(table.bucket(0), 0U);
      EXPECT_EQ(table.bucket(~uint64_t{0}), table.bucket_count() - 1);
    });
  });
}

TEST(FingerprintTableTest, BucketsOfHugeTablesLieInTheirLines) {
  // The table has the maximum number of lines. With this number, the division by a rounded
  // reciprocal, which computes the line of a bucket, has its largest error.
  for_each_shape([&](Geometry geometry) {
    geometry.bit_count = BitArray::kMaxBits;
    const unsigned buckets_per_line = kLineBits / (geometry.hash_count * geometry.cell_bits);
    with_fingerprint_table(nullptr, geometry, [&](const auto& table) {
      for (uint64_t back = 1; back <= 2 * buckets_per_line; ++back) {
        const uint64_t bucket = table.bucket_count() - back;
        const uint64_t line = table.place(bucket).byte / (kLineBits / 8);
        ASSERT_EQ(line, bucket / buckets_per_line);
      }
    });
  });
}

}  // namespace
}  // namespace core::bloom
