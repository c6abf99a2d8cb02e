// SPDX-License-Identifier: MIT
#include "core/bloom/fingerprint_kernels.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "core/bloom/arrays/fingerprint_table.h"
#include "core/bloom/line_kernels.h"
#include "core/prefetch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace core::bloom {
namespace {

// Prefetch distance in items, each of which needs two lines. This distance keeps a core's miss
// buffers busy: the core compares some lines while other lines are loaded.
constexpr size_t kItemsAhead = 20;

// check_items() is inlined, so that its loops are compiled for the instruction set of each caller.
template <class Table>
[[gnu::always_inline]] inline void check_items(const Table& table, bool fetches,
                                               std::span<const ItemHash> hashes,
                                               std::span<bool> found) {
  assert(hashes.size() <= kGroupItems && found.size() >= hashes.size());
  std::array<typename Table::Places, kGroupItems> places;
  const auto locate = [&](size_t i) {
    if (i >= hashes.size()) return;
    places[i] = table.places_of(hashes[i].first, hashes[i].second);
    if (fetches) table.prefetch(places[i]);
  };
  for (size_t i = 0; i < kItemsAhead; ++i) locate(i);
  for (size_t i = 0; i < hashes.size(); ++i) {
    locate(i + kItemsAhead);
    // Uses no branch, because the result of a lookup is unpredictable.
    found[i] |= table.holds(places[i]);
  }
}

template <class Table>
[[gnu::always_inline]] inline uint64_t remove_items(const Table& table, bool fetches,
                                                    std::span<const ItemHash> hashes,
                                                    std::span<Removal> outcomes) {
  assert(hashes.size() <= kGroupItems && outcomes.size() >= hashes.size());
  std::array<typename Table::Places, kGroupItems> places;
  for (size_t i = 0; i < hashes.size(); ++i) {
    places[i] = table.places_of(hashes[i].first, hashes[i].second);
    if (fetches) table.prefetch(places[i]);
  }
  uint64_t gone = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (outcomes[i] != Removal::kAbsent || !table.free_slot(places[i])) continue;
    outcomes[i] = Removal::kGone;
    ++gone;
  }
  return gone;
}

bool check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return with_fingerprint_table(words, geometry, [&](const auto& table) {
    return table.holds(table.places_of(hash.first, hash.second));
  });
}

void check_group(const ArrayView& array, std::span<const ItemHash> hashes, std::span<bool> found) {
  with_fingerprint_table(array.words, array.geometry, [&](const auto& table) {
    check_items(table, is_fetched(array.geometry), hashes, found);
  });
}

bool remove(uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return with_fingerprint_table(words, geometry, [&](const auto& table) {
    return table.free_slot(table.places_of(hash.first, hash.second));
  });
}

uint64_t remove_group(uint64_t* words, const Geometry& geometry, std::span<const ItemHash> hashes,
                      std::span<Removal> outcomes) {
  return with_fingerprint_table(words, geometry, [&](const auto& table) {
    return remove_items(table, is_fetched(geometry), hashes, outcomes);
  });
}

}  // namespace

const FingerprintKernels& portable_fingerprint_kernels() {
  static constexpr FingerprintKernels kKernels{check, check_group, remove, remove_group};
  return kKernels;
}

#if defined(__x86_64__)
namespace {

// Only the functions marked BLOOMERY_AVX2 may use AVX2. A compiler flag for the whole file would
// also affect inline functions of other headers.
#define BLOOMERY_AVX2 __attribute__((target("avx2")))

// HalvedShape: divides the slots of a bucket into two halves. Each half is loaded as one machine
// word.
struct alignas(64) HalvedShape {
  // The positions of the two halves of a bucket. For each half, `bytes` has the offset in the line
  // at which the half's word begins. `shifts` has the number of bits in that word that precede the
  // half.
  struct Halves {
    std::array<uint8_t, 2> bytes;
    std::array<uint8_t, 2> shifts;
  };
  static constexpr unsigned kHalfBitsMax = 57;
  static constexpr unsigned kBucketsPerLineMax = 16;

  std::array<uint64_t, 2> lows;
  std::array<uint64_t, 2> highs;
  std::array<Halves, kBucketsPerLineMax> buckets;

  static constexpr bool is_for(unsigned slots, unsigned bits) {
    return BucketModel::is_shape(slots, bits) && (slots + 1) / 2 * bits <= kHalfBitsMax &&
           kLineBits / (slots * bits) <= kBucketsPerLineMax;
  }
  static constexpr HalvedShape of(unsigned slots, unsigned bits) {
    HalvedShape shape{};
    for (unsigned slot = 0; slot < slots; ++slot) {
      const unsigned half = slot / ((slots + 1) / 2);
      const unsigned begin = slot % ((slots + 1) / 2) * bits;
      shape.lows[half] |= uint64_t{1} << begin;
      shape.highs[half] |= uint64_t{1} << (begin + bits - 1);
    }
    for (unsigned i = 0; i < kLineBits / (slots * bits); ++i) {
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned bit = (i * slots + half * ((slots + 1) / 2)) * bits;
        const unsigned byte = bucket_word_begin(bit, sizeof(uint64_t));
        shape.buckets[i].bytes[half] = static_cast<uint8_t>(byte);
        shape.buckets[i].shifts[half] = static_cast<uint8_t>(bit - byte * 8);
      }
    }
    return shape;
  }
};

constinit const auto kHalvedShapes = [] {
  std::array<std::array<HalvedShape, BucketModel::kBitsMax + 1>, BucketModel::kSlotsMax + 1> all{};
  for (unsigned slots = BucketModel::kSlotsMin; slots <= BucketModel::kSlotsMax; ++slots) {
    for (unsigned bits = BucketModel::kBitsMin; bits <= BucketModel::kBitsMax; ++bits) {
      if (HalvedShape::is_for(slots, bits)) all[slots][bits] = HalvedShape::of(slots, bits);
    }
  }
  return all;
}();

// HalvedTable: compares both halves of both buckets of an item in parallel.
class HalvedTable {
 public:
  struct Places {
    uint64_t fingerprint;
    std::array<BucketIndex, 2> buckets;
  };

  static bool is_for(const Geometry& geometry) {
    return HalvedShape::is_for(geometry.hash_count, geometry.cell_bits);
  }
  // True if the lookup of a single item should use HalvedTable, because a bucket does not fit one
  // word of 8 bytes. If the bucket fits, FingerprintTable is faster: comparing one word takes fewer
  // consecutive steps than comparing two halves.
  static bool is_for_one_item(const Geometry& geometry) {
    return is_for(geometry) && !kBucketShapes[geometry.hash_count][geometry.cell_bits].is_narrow;
  }
  // REQUIRES: is_for(geometry).
  HalvedTable(const uint64_t* words, const Geometry& geometry)
      : lines_(reinterpret_cast<const std::byte*>(words)),
        table_(words, geometry.bit_count / kLineBits,
               kBucketShapes[geometry.hash_count][geometry.cell_bits]),
        shape_(kHalvedShapes[geometry.hash_count][geometry.cell_bits]),
        slot_bits_(geometry.cell_bits) {}

  [[gnu::always_inline]] Places places_of(uint64_t first_hash, uint64_t second_hash) const {
    const uint64_t first = table_.bucket(first_hash);
    const uint64_t fingerprint = table_.fingerprint(second_hash);
    const uint64_t second = table_.other_bucket(first, fingerprint);
    return {fingerprint, {table_.index(first), table_.index(second)}};
  }
  void prefetch(const Places& places) const {
    for (const BucketIndex& bucket : places.buckets) core::prefetch(line(bucket));
  }
  BLOOMERY_AVX2 bool holds(const Places& places) const {
    return _mm256_testz_si256(zeros(places), twice(shape_.highs)) == 0;
  }
  BLOOMERY_AVX2 bool free_slot(const Places& places) const {
    const __m256i marked = _mm256_and_si256(zeros(places), twice(shape_.highs));
    if (_mm256_testz_si256(marked, marked) != 0) return false;
    alignas(32) std::array<uint64_t, 4> marks;
    _mm256_store_si256(reinterpret_cast<__m256i*>(marks.data()), marked);
    // Picks the lowest matching slot of the first bucket with a match. Uses no branch, because the
    // processor cannot predict which half of which bucket has the first match.
    const __m256i is_unmarked = _mm256_cmpeq_epi64(marked, _mm256_setzero_si256());
    const auto unmarked =
        static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(is_unmarked)));
    const auto half = static_cast<unsigned>(std::countr_one(unmarked));
    const BucketIndex& bucket = places.buckets[half / 2];
    const HalvedShape::Halves& halves = shape_.buckets[bucket.index];
    const auto above = static_cast<unsigned>(std::countr_zero(marks[half])) + 1;
    const unsigned shift = halves.shifts[half % 2] + above - slot_bits_;
    std::byte* const at = const_cast<std::byte*>(line(bucket)) + halves.bytes[half % 2];
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    word ^= places.fingerprint << shift;
    std::memcpy(at, &word, sizeof(word));
    return true;
  }

 private:
  // Marks the slots that hold the item's fingerprint by their highest bits. Other bits of the
  // result have no meaning. As in FingerprintTable::zeros(), only the lowest mark of each word is
  // reliable. The four words are the low and the high half of the first bucket, then those of the
  // second bucket.
  BLOOMERY_AVX2 __m256i zeros(const Places& places) const {
    const auto& [first, second] = places.buckets;
    const __m256i halves = _mm256_set_m128i(load(second), load(first));
    const __m256i shifts = _mm256_set_m128i(shifts_of(second), shifts_of(first));
    const auto wanted = static_cast<int64_t>(shape_.lows[0] * places.fingerprint);
    const __m256i slots =
        _mm256_xor_si256(_mm256_srlv_epi64(halves, shifts), _mm256_set1_epi64x(wanted));
    return _mm256_andnot_si256(slots, _mm256_sub_epi64(slots, twice(shape_.lows)));
  }
  const std::byte* line(const BucketIndex& bucket) const {
    return lines_ + bucket.line * (kLineBits / 8);
  }
  BLOOMERY_AVX2 __m128i load(const BucketIndex& bucket) const {
    const auto& [low, high] = shape_.buckets[bucket.index].bytes;
    const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(line(bucket) + low));
    return _mm_castps_si128(
        _mm_loadh_pi(_mm_castsi128_ps(half), reinterpret_cast<const __m64*>(line(bucket) + high)));
  }
  BLOOMERY_AVX2 __m128i shifts_of(const BucketIndex& bucket) const {
    return _mm_cvtepu8_epi64(_mm_loadu_si16(shape_.buckets[bucket.index].shifts.data()));
  }
  BLOOMERY_AVX2 static __m256i twice(const std::array<uint64_t, 2>& halves) {
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves.data())));
  }

  const std::byte* lines_;
  FingerprintTable<uint128_t> table_;
  const HalvedShape& shape_;
  unsigned slot_bits_;
};

BLOOMERY_AVX2 bool check_with_avx2(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  if (!HalvedTable::is_for_one_item(geometry)) return check(words, geometry, hash);
  const HalvedTable table(words, geometry);
  return table.holds(table.places_of(hash.first, hash.second));
}

BLOOMERY_AVX2 void check_group_with_avx2(const ArrayView& array, std::span<const ItemHash> hashes,
                                         std::span<bool> found) {
  if (!HalvedTable::is_for(array.geometry)) return check_group(array, hashes, found);
  check_items(HalvedTable(array.words, array.geometry), is_fetched(array.geometry), hashes, found);
}

BLOOMERY_AVX2 bool remove_with_avx2(uint64_t* words, const Geometry& geometry, ItemHash hash) {
  if (!HalvedTable::is_for_one_item(geometry)) return remove(words, geometry, hash);
  const HalvedTable table(words, geometry);
  return table.free_slot(table.places_of(hash.first, hash.second));
}

BLOOMERY_AVX2 uint64_t remove_group_with_avx2(uint64_t* words, const Geometry& geometry,
                                              std::span<const ItemHash> hashes,
                                              std::span<Removal> outcomes) {
  if (!HalvedTable::is_for(geometry)) return remove_group(words, geometry, hashes, outcomes);
  return remove_items(HalvedTable(words, geometry), is_fetched(geometry), hashes, outcomes);
}

}  // namespace

const FingerprintKernels* avx2_fingerprint_kernels() {
  static constexpr FingerprintKernels kKernels{check_with_avx2, check_group_with_avx2,
                                               remove_with_avx2, remove_group_with_avx2};
  return __builtin_cpu_supports("avx2") ? &kKernels : nullptr;
}

#else

const FingerprintKernels* avx2_fingerprint_kernels() {
  return nullptr;
}

#endif

}  // namespace core::bloom
