// SPDX-License-Identifier: MIT
//
// FingerprintTable: the buckets of FingerprintLayout, how they are read and written.
//
// All slots of a bucket are compared at once: the bucket is one word, in which the slots with a
// value are found as bytes of zeros are in a machine word. The word is of 8 bytes where each bucket
// of a line lies within one, else of 16. What depends on the shape of a bucket is looked up in
// kBucketShapes, not computed.
//
// Invariants: no word reaches past its line; a bucket begins within the first 64 bits of its word.
// Thread safety: as the words that it reads or writes.
// Source: docs/bloom_math.md, "The fingerprints layout"; Mycroft 1987, in Warren 2013, "Hacker's
// Delight", 6-1; Lemire 2019, "Fast random integer generation in an interval".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bloom/models/bucket_model.h"
#include "core/bloom/models/line_model.h"
#include "core/fast_range.h"
#include "core/prefetch.h"

namespace core::bloom {

struct alignas(64) BucketShape {
  uint128_t lows;         // the lowest bit of each slot
  uint128_t highs;        // the highest
  uint64_t reciprocal;    // 2^64 over the buckets of a line, rounded up
  uint64_t fingerprints;  // how many there are, and the greatest
  uint32_t buckets_per_line;
  uint16_t bucket_bits;
  uint8_t slots;
  uint8_t slot_bits;
  bool is_narrow;  // a word of 8 bytes will do
};

using BucketShapes = std::array<std::array<BucketShape, BucketModel::kBitsMax + 1>,  //
                                BucketModel::kSlotsMax + 1>;
// By slots of a bucket and bits of a slot.
extern const BucketShapes kBucketShapes;

// The byte of its line at which the word of a bucket that begins at `bit` is read: the last word
// holds the end of the line, so nothing is read behind it.
constexpr unsigned bucket_word_begin(unsigned bit, unsigned word_bytes) {
  return std::min(bit / 8, kLineBits / 8 - word_bytes);
}

// Which bucket of which line.
struct BucketIndex {
  uint64_t line;
  unsigned index;
};

// Where a bucket begins: a byte of the table, and how many bits from there on lie before it.
struct BucketPlace {
  uint64_t byte;
  unsigned shift;
};

// An item's fingerprint and its two buckets, whose lines may be on their way to the cache.
struct FingerprintPlaces {
  uint64_t fingerprint;
  std::array<BucketPlace, 2> buckets;
};

// Word is what a bucket is read as.
template <class Word>
class FingerprintTable {
 public:
  using Places = FingerprintPlaces;

  // `words`: line_count lines. REQUIRES: members that change something are called only where the
  // words may be written.
  FingerprintTable(const uint64_t* words, uint64_t line_count, const BucketShape& shape)
      : words_(words),
        shape_(shape),
        // Even: one bucket of an odd number stays unused.
        bucket_count_(line_count * shape.buckets_per_line & ~uint64_t{1}) {}

  uint64_t bucket_count() const { return bucket_count_; }
  unsigned slot_count() const { return shape_.slots; }

  // Of a hash, as bucket() is.
  uint64_t fingerprint(uint64_t hash) const { return 1 + fast_range(hash, shape_.fingerprints); }
  uint64_t bucket(uint64_t hash) const { return fast_range(hash, bucket_count_); }
  uint64_t other_bucket(uint64_t bucket, uint64_t fingerprint) const {
    uint64_t mixed = fingerprint * 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93;
    // Odd, below the even number of buckets.
    const uint64_t sum = 2 * fast_range(mixed, bucket_count_ / 2) + 1;
    const uint64_t other = sum - bucket;
    return sum < bucket ? other + bucket_count_ : other;
  }
  BucketIndex index(uint64_t bucket) const {
    const auto line = static_cast<uint64_t>((uint128_t{bucket} * shape_.reciprocal) >> 64);
    return {line, static_cast<unsigned>(bucket - line * shape_.buckets_per_line)};
  }
  BucketPlace place(uint64_t bucket) const {
    const auto [line, index_in_line] = index(bucket);
    const unsigned bit = index_in_line * shape_.bucket_bits;
    const unsigned byte = bucket_word_begin(bit, sizeof(Word));
    return {line * (kLineBits / 8) + byte, bit - byte * 8};
  }
  // Inline: a call would pass the places through memory.
  [[gnu::always_inline]] Places places(uint64_t first_bucket, uint64_t fingerprint) const {
    return {fingerprint, {place(first_bucket), place(other_bucket(first_bucket, fingerprint))}};
  }
  // Of the two words of an item's hash.
  [[gnu::always_inline]] Places places_of(uint64_t first_hash, uint64_t second_hash) const {
    return places(bucket(first_hash), fingerprint(second_hash));
  }

  void prefetch(const FingerprintPlaces& places) const {
    for (const BucketPlace& bucket : places.buckets) core::prefetch(bytes() + bucket.byte);
  }
  bool holds(const FingerprintPlaces& places) const {
    // No branch between the two, so that both lines are fetched at once.
    const Word wanted = pattern(places.fingerprint);
    const Word first = load(places.buckets[0]) ^ wanted;
    const Word second = load(places.buckets[1]) ^ wanted;
    return ((zeros(first) | zeros(second)) & highs()) != 0;
  }
  // Frees a slot with the fingerprint; false when there is none.
  bool free_slot(const FingerprintPlaces& places) const {
    const Word wanted = pattern(places.fingerprint);
    const Word in_first = zeros(load(places.buckets[0]) ^ wanted) & highs();
    const Word in_second = zeros(load(places.buckets[1]) ^ wanted) & highs();
    if ((in_first | in_second) == 0) return false;
    // No branch on which bucket it is, which nobody can guess.
    const bool is_second = in_first == 0;
    const std::array<Word, 2> marked{in_first, in_second};
    flip(places.buckets[is_second], lowest(marked[is_second]), places.fingerprint);
    return true;
  }
  // Puts the fingerprint into the lowest free slot of the bucket; false when there is none.
  bool fill_slot(uint64_t bucket, uint64_t fingerprint) const {
    const BucketPlace at = place(bucket);
    const Word free = zeros(load(at)) & highs();
    if (free == 0) return false;
    flip(at, lowest(free), fingerprint);
    return true;
  }
  // Puts the fingerprint into a slot; returns what was there.
  uint64_t exchange(uint64_t bucket, unsigned slot, uint64_t fingerprint) const {
    const BucketPlace at = place(bucket);
    const Word value =
        load(at) >> (slot * shape_.slot_bits) & static_cast<Word>(shape_.fingerprints);
    flip(at, slot * shape_.slot_bits, static_cast<uint64_t>(value) ^ fingerprint);
    return static_cast<uint64_t>(value);
  }

 private:
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words_); }
  Word lows() const { return static_cast<Word>(shape_.lows); }
  Word highs() const { return static_cast<Word>(shape_.highs); }

  // The slots of a bucket, lowest first, and above them bits of other buckets.
  Word load(const BucketPlace& place) const {
    Word word;
    std::memcpy(&word, bytes() + place.byte, sizeof(word));
    return word >> (place.shift % 64);  // no shift is more, which the compiler does not know
  }
  Word pattern(uint64_t value) const { return lows() * value; }
  // With highs(): the top bit of each slot of zeros. Exact up to the lowest such slot; those above
  // it may be marked wrongly, which nobody asks for.
  Word zeros(Word slots) const { return (slots - lows()) & ~slots; }

  // Bits below the lowest slot whose top bit is marked.
  unsigned lowest(Word marked) const {
    auto half = static_cast<uint64_t>(marked);
    unsigned below = 0;
    if constexpr (sizeof(Word) > sizeof(half)) {
      // No branch on which half it is, which nobody can guess.
      const uint64_t is_high = half == 0;
      half |= static_cast<uint64_t>(marked >> 64) & -is_high;
      below = static_cast<unsigned>(is_high) * 64;
    }
    return below + static_cast<unsigned>(std::countr_zero(half)) + 1 - shape_.slot_bits;
  }
  // Flips the bits of a value in the slot that begins `slot_bits` behind the bucket: fills a free
  // slot, and frees one that holds the value.
  void flip(const BucketPlace& place, unsigned slot_bits, uint64_t value) const {
    std::byte* const at = const_cast<std::byte*>(bytes()) + place.byte;
    Word word;
    std::memcpy(&word, at, sizeof(word));
    word ^= Word{value} << (place.shift + slot_bits);
    std::memcpy(at, &word, sizeof(word));
  }

  const uint64_t* words_;
  const BucketShape& shape_;
  uint64_t bucket_count_;
};

}  // namespace core::bloom
