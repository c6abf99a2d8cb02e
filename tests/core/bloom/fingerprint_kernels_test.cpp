// SPDX-License-Identifier: MIT
//
// All kernels give the same results, for every shape of a bucket and for lines of random bits.
#include "core/bloom/fingerprint_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "core/bloom/arrays/fingerprint_table.h"
#include "core/bloom/fingerprint_layout.h"
#include "core/bloom/line_kernels.h"

namespace core::bloom {
namespace {

constexpr uint64_t kKernelsSeed = 20261123;
constexpr uint64_t kKernelLines = 5;

Geometry kernel_shape(unsigned slots, unsigned bits) {
  Geometry geometry;
  geometry.bit_count = kKernelLines * kLineBits;
  geometry.hash_count = static_cast<uint16_t>(slots);
  geometry.lines_per_lookup = 2;
  geometry.cell_bits = static_cast<uint16_t>(bits);
  return geometry;
}

template <class Function>
void for_each_kernel_shape(Function&& function) {
  for (unsigned slots = BucketModel::kSlotsMin; slots <= BucketModel::kSlotsMax; ++slots) {
    for (unsigned bits = BucketModel::kBitsMin; BucketModel::is_shape(slots, bits); ++bits) {
      SCOPED_TRACE(testing::Message() << slots << " slots of " << bits << " bits");
      function(kernel_shape(slots, bits));
    }
  }
}

// Few different hashes, so that some items are present and some share buckets.
ItemHash some_hash(std::mt19937_64& random) {
  return {random() % 16 << 60, random() % 32 << 59};
}

// The vector has no spare element after the last line of the filter. So AddressSanitizer detects a
// kernel that reads past the filter.
using Words = std::vector<uint64_t>;

Words some_items(const Geometry& geometry, std::mt19937_64& random) {
  Words words(kKernelLines * kLineBits / 64);
  const uint64_t count = random() % (FingerprintLayout::slot_count(geometry) + 1);
  for (uint64_t i = 0; i < count; ++i) {
    FingerprintLayout::insert(words.data(), geometry, 0, some_hash(random));
  }
  return words;
}

const FingerprintKernels& faster_kernels() {
  return *avx2_fingerprint_kernels();
}

class FingerprintKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (avx2_fingerprint_kernels() == nullptr) GTEST_SKIP() << "no AVX2";
  }
  std::mt19937_64 random_{kKernelsSeed};
};

TEST_F(FingerprintKernelsTest, KernelsAgreeOnSingleLookups) {
  for_each_kernel_shape([&](const Geometry& geometry) {
    const Words words = some_items(geometry, random_);
    for (int i = 0; i < 200; ++i) {
      const ItemHash hash = some_hash(random_);
      ASSERT_EQ(faster_kernels().check(words.data(), geometry, hash),
                portable_fingerprint_kernels().check(words.data(), geometry, hash));
    }
  });
}

TEST_F(FingerprintKernelsTest, GroupLookupsEqualSingleLookups) {
  for_each_kernel_shape([&](const Geometry& geometry) {
    const Words words = some_items(geometry, random_);
    std::array<ItemHash, kGroupItems> hashes;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{19}, size_t{20}, kGroupItems}) {
      std::ranges::generate(hashes, [&] { return some_hash(random_); });
      const auto group = std::span<const ItemHash>(hashes).first(count);
      for (const FingerprintKernels* kernels :
           {&portable_fingerprint_kernels(), &faster_kernels()}) {
        std::array<bool, kGroupItems> found{};
        kernels->check_group({words.data(), geometry}, group, found);
        for (size_t i = 0; i < kGroupItems; ++i) {
          ASSERT_EQ(found[i], i < count && portable_fingerprint_kernels().check(
                                               words.data(), geometry, hashes[i]));
        }
      }
    }
  });
}

TEST_F(FingerprintKernelsTest, FoundItemsStayFound) {
  for_each_kernel_shape([&](const Geometry& geometry) {
    const Words words(kKernelLines * kLineBits / 64);
    const std::array<ItemHash, 3> hashes{};
    std::array found{true, false, true};
    faster_kernels().check_group({words.data(), geometry}, hashes, found);
    ASSERT_EQ(found, (std::array{true, false, true}));
  });
}

TEST_F(FingerprintKernelsTest, SingleRemovalsLeaveTheSameBits) {
  for_each_kernel_shape([&](const Geometry& geometry) {
    Words words = some_items(geometry, random_);
    Words expected = words;
    for (int i = 0; i < 200; ++i) {
      const ItemHash hash = some_hash(random_);
      ASSERT_EQ(faster_kernels().remove(words.data(), geometry, hash),
                portable_fingerprint_kernels().remove(expected.data(), geometry, hash));
      ASSERT_EQ(words, expected);
    }
  });
}

TEST_F(FingerprintKernelsTest, GroupsOfRemovalsLeaveTheSameBits) {
  for_each_kernel_shape([&](const Geometry& geometry) {
    Words words = some_items(geometry, random_);
    Words expected = words;
    std::array<ItemHash, kGroupItems> hashes;
    std::ranges::generate(hashes, [&] { return some_hash(random_); });
    std::array<Removal, kGroupItems> outcomes;
    std::ranges::generate(outcomes,
                          [&] { return random_() % 8 == 0 ? Removal::kGone : Removal::kAbsent; });
    std::array<Removal, kGroupItems> expected_outcomes = outcomes;
    ASSERT_EQ(faster_kernels().remove_group(words.data(), geometry, hashes, outcomes),
              portable_fingerprint_kernels().remove_group(expected.data(), geometry, hashes,
                                                          expected_outcomes));
    ASSERT_EQ(outcomes, expected_outcomes);
    ASSERT_EQ(words, expected);
  });
}

TEST_F(FingerprintKernelsTest, BitsOutsideBucketsAreIgnored) {
  // Sets random bits after the last bucket of each line, which the kernels must ignore.
  for_each_kernel_shape([&](const Geometry& geometry) {
    const unsigned used = kLineBits / (geometry.hash_count * geometry.cell_bits) *
                          (geometry.hash_count * geometry.cell_bits);
    Words words = some_items(geometry, random_);
    const Words clean = words;
    for (uint64_t line = 0; line < kKernelLines; ++line) {
      for (uint64_t bit = line * kLineBits + used; bit < (line + 1) * kLineBits; ++bit) {
        words[bit / 64] |= (random_() & 1) << (bit % 64);
      }
    }
    for (int i = 0; i < 100; ++i) {
      const ItemHash hash = some_hash(random_);
      ASSERT_EQ(faster_kernels().check(words.data(), geometry, hash),
                portable_fingerprint_kernels().check(clean.data(), geometry, hash));
    }
  });
}

TEST(FingerprintKernelsChoiceTest, BestKernelsOfTheProcessorAreChosen) {
  const FingerprintKernels* const fast = avx2_fingerprint_kernels();
  EXPECT_EQ(&fingerprint_kernels(), fast != nullptr ? fast : &portable_fingerprint_kernels());
}

}  // namespace
}  // namespace core::bloom
