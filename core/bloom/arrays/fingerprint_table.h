// SPDX-License-Identifier: MIT
//
// FingerprintTable: reads and writes the buckets of FingerprintLayout.
//
// All slots of a bucket are compared at once. A bucket is loaded as one word. The method that finds
// zero bytes in a machine word finds the slots that hold a value. The word has 8 bytes if every
// bucket of a line lies within such a word, else 16. Constants that depend on the shape of a bucket
// are not computed but looked up in kBucketShapes.
//
// Invariants: each word lies within one cache line. A bucket begins within the first 64 bits of its
// word.
// Thread safety: lookups may run in parallel; changes need exclusive access to the words of the
// table.
// Source: docs/bloom_math.md, "The fingerprints layout"; Mycroft 1987, in Warren 2013, "Hacker's
// Delight", 6-1; Lemire 2019, "Fast random integer generation in an interval".
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bloom/arrays/bucket_model.h"
#include "core/bloom/arrays/line_model.h"
#include "core/fast_range.h"
#include "core/prefetch.h"

namespace core::bloom {

struct alignas(64) BucketShape {
  uint128_t lows;         // the lowest bit of each slot
  uint128_t highs;        // the highest bit of each slot
  uint64_t reciprocal;    // 2^64 / buckets_per_line, rounded up
  uint64_t fingerprints;  // number of different fingerprints, which equals the largest fingerprint
  uint32_t buckets_per_line;
  uint16_t bucket_bits;
  uint8_t slots;
  uint8_t slot_bits;
  bool is_narrow;  // true if every bucket of a line lies within a word of 8 bytes
};

using BucketShapes = std::array<std::array<BucketShape, BucketModel::kBitsMax + 1>,  //
                                BucketModel::kSlotsMax + 1>;
// The shapes of all buckets, indexed by slots per bucket and bits per slot.
extern const BucketShapes kBucketShapes;

// Returns the byte offset within a line at which to load the word that contains a bucket. The
// bucket begins at `bit`. The last word of a line ends where the line ends, so that no load reads
// past the line.
constexpr unsigned bucket_word_begin(unsigned bit, unsigned word_bytes) {
  return std::min(bit / 8, kLineBits / 8 - word_bytes);
}

// Index of a line, and index of a bucket in that line.
struct BucketIndex {
  uint64_t line;
  unsigned index;
};

// The start of a bucket. `byte` is the offset in the table at which the bucket's word is loaded.
// `shift` is the number of bits that precede the bucket in that word.
struct BucketPlace {
  uint64_t byte;
  unsigned shift;
};

// An item's fingerprint, and where its two buckets start in the table. The contents of the buckets
// might not be in the processor's cache yet.
struct FingerprintPlaces {
  uint64_t fingerprint;
  std::array<BucketPlace, 2> buckets;
};

// A bucket is loaded as one integer of type Word.
template <class Word>
class FingerprintTable {
 public:
  using Places = FingerprintPlaces;

  // `words` holds line_count lines. REQUIRES: `words` is writable if a member that changes the
  // table is called.
  FingerprintTable(const uint64_t* words, uint64_t line_count, const BucketShape& shape)
      : words_(words),
        shape_(shape),
        // The number of buckets is even: if the lines have an odd number of buckets, the last
        // bucket stays unused.
        bucket_count_(line_count * shape.buckets_per_line & ~uint64_t{1}) {}

  uint64_t bucket_count() const { return bucket_count_; }
  unsigned slot_count() const { return shape_.slots; }

  // Returns the fingerprint for a hash, in [1, number of fingerprints].
  uint64_t fingerprint(uint64_t hash) const { return 1 + fast_range(hash, shape_.fingerprints); }
  uint64_t bucket(uint64_t hash) const { return fast_range(hash, bucket_count_); }
  uint64_t other_bucket(uint64_t bucket, uint64_t fingerprint) const {
    uint64_t mixed = fingerprint * 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93;
    // `sum` is the sum of the two bucket numbers modulo the number of buckets, which is even. `sum`
    // is odd, so the two buckets differ.
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
  // Inlined, because a call would pass the result through memory.
  [[gnu::always_inline]] Places places(uint64_t first_bucket, uint64_t fingerprint) const {
    return {fingerprint, {place(first_bucket), place(other_bucket(first_bucket, fingerprint))}};
  }
  // `first_hash` and `second_hash` are the two words of an item's hash.
  [[gnu::always_inline]] Places places_of(uint64_t first_hash, uint64_t second_hash) const {
    return places(bucket(first_hash), fingerprint(second_hash));
  }

  void prefetch(const FingerprintPlaces& places) const {
    for (const BucketPlace& bucket : places.buckets) core::prefetch(bytes() + bucket.byte);
  }
  bool holds(const FingerprintPlaces& places) const {
    // There is no branch between the two loads, so the processor fetches both lines in parallel.
    const Word wanted = pattern(places.fingerprint);
    const Word first = load(places.buckets[0]) ^ wanted;
    const Word second = load(places.buckets[1]) ^ wanted;
    return ((zeros(first) | zeros(second)) & highs()) != 0;
  }
  // Frees a slot that holds the fingerprint. Returns false if no slot holds it.
  bool free_slot(const FingerprintPlaces& places) const {
    const Word wanted = pattern(places.fingerprint);
    const Word in_first = zeros(load(places.buckets[0]) ^ wanted) & highs();
    const Word in_second = zeros(load(places.buckets[1]) ^ wanted) & highs();
    if ((in_first | in_second) == 0) return false;
    // Uses no branch, because the bucket that matches is unpredictable.
    const bool is_second = in_first == 0;
    const std::array<Word, 2> marked{in_first, in_second};
    flip(places.buckets[is_second], lowest(marked[is_second]), places.fingerprint);
    return true;
  }
  // Stores the fingerprint in the lowest free slot of the bucket. Returns false if all slots are
  // taken.
  bool fill_slot(uint64_t bucket, uint64_t fingerprint) const {
    const BucketPlace at = place(bucket);
    const Word free = zeros(load(at)) & highs();
    if (free == 0) return false;
    flip(at, lowest(free), fingerprint);
    return true;
  }
  // Stores the fingerprint in a slot. Returns the fingerprint that was there.
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

  // Returns the slots of a bucket, lowest first. Higher bits of the result belong to other buckets.
  Word load(const BucketPlace& place) const {
    Word word;
    std::memcpy(&word, bytes() + place.byte, sizeof(word));
    // A shift is always less than 64. `% 64` shows this to the compiler, which then generates
    // faster code for words of 128 bits.
    return word >> (place.shift % 64);
  }
  Word pattern(uint64_t value) const { return lows() * value; }
  // `zeros(slots) & highs()` has the top bit of each all-zero slot set. The result is exact up to
  // the lowest all-zero slot. Bits of higher slots may be wrong, but no caller reads them.
  Word zeros(Word slots) const { return (slots - lows()) & ~slots; }

  // In `marked`, the top bits of some slots are set. Returns the number of bits below the lowest of
  // these slots.
  unsigned lowest(Word marked) const {
    auto half = static_cast<uint64_t>(marked);
    unsigned below = 0;
    if constexpr (sizeof(Word) > sizeof(half)) {
      // Selects the lowest half of the word that has a marked slot. Uses no branch, because the
      // processor could not predict which half that is.
      const uint64_t is_high = half == 0;
      half |= static_cast<uint64_t>(marked >> 64) & -is_high;
      below = static_cast<unsigned>(is_high) * 64;
    }
    return below + static_cast<unsigned>(std::countr_zero(half)) + 1 - shape_.slot_bits;
  }
  // XORs a value into the slot that begins `slot_bits` bits after the start of the bucket. If the
  // slot is free (zero), this stores the value. If the slot holds the value, this frees the slot.
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
