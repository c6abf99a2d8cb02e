// SPDX-License-Identifier: MIT
#include "core/bloom/fingerprint_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "core/bloom/line_kernels.h"
#include "core/bloom/line_walk.h"
#include "core/bloom/models/bucket_model.h"
#include "core/prefetch.h"

namespace core::bloom {
namespace {

// One row for each shape of a bucket: what follows from it and would take divisions to compute.
struct BucketShape {
  uint128_t lows;       // the lowest bit of each slot
  uint64_t reciprocal;  // 2^64 over the buckets of a line, rounded up
  uint64_t buckets_per_line;
};

constexpr auto kBitsEnd = BucketModel::kBitsMax + 1;
using BucketShapes = std::array<std::array<BucketShape, kBitsEnd>, BucketModel::kSlotsMax + 1>;

constexpr BucketShapes kShapes = [] {
  BucketShapes shapes{};
  for (unsigned slots = BucketModel::kSlotsMin; slots <= BucketModel::kSlotsMax; ++slots) {
    for (unsigned bits = BucketModel::kBitsMin; bits < kBitsEnd; ++bits) {
      if (slots * bits > BucketModel::kBucketBitsMax) break;
      BucketShape& shape = shapes[slots][bits];
      for (unsigned slot = 0; slot < slots; ++slot) shape.lows |= uint128_t{1} << (slot * bits);
      shape.buckets_per_line = kLineBits / (slots * bits);
      shape.reciprocal = static_cast<uint64_t>(((uint128_t{1} << 64) + shape.buckets_per_line - 1) /
                                               shape.buckets_per_line);
    }
  }
  return shapes;
}();

// Evenly over [0, count) (Lemire 2019).
uint64_t in_range(uint64_t value, uint64_t count) {
  return static_cast<uint64_t>((uint128_t{value} * count) >> 64);
}

// Where a bucket begins: 16 bytes of its line, and how many bits of them lie before it.
struct Place {
  uint64_t byte;
  unsigned shift;
};

class Table {
 public:
  Table(const uint64_t* words, const Geometry& geometry)
      : words_(words),
        shape_(kShapes[geometry.hash_count][geometry.cell_bits]),
        bits_(geometry.cell_bits),
        bucket_bits_(geometry.hash_count * bits_),
        // Even: one bucket of an odd number stays unused.
        bucket_count_(geometry.bit_count / kLineBits * shape_.buckets_per_line & ~uint64_t{1}) {}

  uint64_t bucket_count() const { return bucket_count_; }

  uint64_t fingerprint(ItemHash hash) const {
    return 1 + in_range(hash.second, (uint64_t{1} << bits_) - 1);
  }
  uint64_t bucket(ItemHash hash) const { return in_range(hash.first, bucket_count_); }
  uint64_t other_bucket(uint64_t bucket, uint64_t fingerprint) const {
    uint64_t mixed = fingerprint * 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93;
    // Odd, below the even number of buckets.
    const uint64_t sum = 2 * in_range(mixed, bucket_count_ / 2) + 1;
    return sum - bucket + (sum < bucket ? bucket_count_ : 0);
  }

  Place place(uint64_t bucket) const {
    const auto line = static_cast<uint64_t>((uint128_t{bucket} * shape_.reciprocal) >> 64);
    const uint64_t index = bucket - line * shape_.buckets_per_line;
    const auto bit = static_cast<unsigned>(index) * bucket_bits_;
    // The last 16 bytes of a line hold the end of it, so nothing is read behind it.
    constexpr unsigned kLastLoad = kLineBits / 8 - sizeof(uint128_t);
    const unsigned byte = std::min(bit / 8, kLastLoad);
    return {line * (kLineBits / 8) + byte, bit - byte * 8};
  }
  void prefetch(const Place& place) const { core::prefetch(bytes() + place.byte); }

  // The slots of a bucket, lowest first, and above them bits of other buckets.
  uint128_t load(const Place& place) const {
    uint128_t word;
    std::memcpy(&word, bytes() + place.byte, sizeof(word));
    return word >> place.shift;
  }

  // A bit of each slot with this value: the top one. Exact up to the lowest slot that has it; slots
  // above that one may be marked wrongly, which nobody asks for.
  uint128_t slots_with(uint128_t bucket, uint64_t value) const {
    const uint128_t difference = bucket ^ (shape_.lows * value);
    return (difference - shape_.lows) & ~difference & (shape_.lows << (bits_ - 1));
  }
  bool holds(const Place& place, uint64_t fingerprint) const {
    return slots_with(load(place), fingerprint) != 0;
  }

  // Bits below the lowest marked slot.
  unsigned lowest(uint128_t marked) const {
    const auto low = static_cast<uint64_t>(marked);
    const int top = low != 0 ? std::countr_zero(low)
                             : 64 + std::countr_zero(static_cast<uint64_t>(marked >> 64));
    return static_cast<unsigned>(top) + 1 - bits_;
  }

  unsigned bits() const { return bits_; }

 private:
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words_); }

  const uint64_t* words_;
  const BucketShape& shape_;
  unsigned bits_;
  unsigned bucket_bits_;
  uint64_t bucket_count_;
};

// Puts `value` into the slot that begins `slot_bits` behind the bucket; returns what was there.
uint64_t exchange(uint64_t* words, const Table& table, const Place& place, unsigned slot_bits,
                  uint64_t value) {
  auto* const at = reinterpret_cast<std::byte*>(words) + place.byte;
  uint128_t word;
  std::memcpy(&word, at, sizeof(word));
  const unsigned shift = place.shift + slot_bits;
  const uint128_t mask = (uint128_t{1} << table.bits()) - 1;
  const auto before = static_cast<uint64_t>(word >> shift & mask);
  word = (word & ~(mask << shift)) | (uint128_t{value} << shift);
  std::memcpy(at, &word, sizeof(word));
  return before;
}

// Into the lowest free slot of the bucket; false when there is none.
bool fill_free_slot(uint64_t* words, const Table& table, uint64_t bucket, uint64_t fingerprint) {
  const Place place = table.place(bucket);
  const uint128_t free = table.slots_with(table.load(place), 0);
  if (free == 0) return false;
  exchange(words, table, place, table.lowest(free), fingerprint);
  return true;
}

// Both buckets are full: the fingerprint takes the place of one there, which moves to its other
// bucket and may displace one in turn. Which one goes follows from the item alone, so that a replay
// does the same. Without a free slot after all moves they are undone.
bool displace(uint64_t* words, const Table& table, unsigned slots, ItemHash hash) {
  struct Move {
    uint64_t bucket;
    unsigned slot_bits;
  };
  std::array<Move, FingerprintLayout::kMovesMax> moves;
  uint64_t fingerprint = table.fingerprint(hash);
  uint64_t bucket = table.bucket(hash);
  uint64_t random = hash.first ^ hash.second;
  for (Move& move : moves) {
    // Knuth's MMIX generator: the high bits are good.
    random = random * 6364136223846793005 + 1442695040888963407;
    move = {bucket, static_cast<unsigned>(in_range(random, slots)) * table.bits()};
    fingerprint = exchange(words, table, table.place(bucket), move.slot_bits, fingerprint);
    bucket = table.other_bucket(bucket, fingerprint);
    if (fill_free_slot(words, table, bucket, fingerprint)) return true;
  }
  for (size_t i = moves.size(); i > 0; --i) {
    const Move& move = moves[i - 1];
    fingerprint = exchange(words, table, table.place(move.bucket), move.slot_bits, fingerprint);
  }
  assert(fingerprint == table.fingerprint(hash));
  return false;
}

// An item's two places in an array, which may be on their way to the cache.
struct Lookup {
  Lookup(const Table& table, ItemHash hash)
      : fingerprint(table.fingerprint(hash)),
        first(table.place(table.bucket(hash))),
        second(table.place(table.other_bucket(table.bucket(hash), fingerprint))) {}
  Lookup() = default;

  bool is_found(const Table& table) const {
    // No branch between the two, so that both lines are fetched at once.
    const uint128_t in_first = table.slots_with(table.load(first), fingerprint);
    const uint128_t in_second = table.slots_with(table.load(second), fingerprint);
    return (in_first | in_second) != 0;
  }

  uint64_t fingerprint;
  Place first;
  Place second;
};

void check_array(const ArrayView& array, std::span<const ItemHash> hashes, std::span<bool> found) {
  const Table table(array.words, array.geometry);
  if (array.geometry.size_bytes() < kCachedBytes) {
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (!found[i]) found[i] = Lookup(table, hashes[i]).is_found(table);
    }
    return;
  }
  std::array<Lookup, kGroupItems> lookups;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (found[i]) continue;
    lookups[i] = Lookup(table, hashes[i]);
    table.prefetch(lookups[i].first);
    table.prefetch(lookups[i].second);
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (!found[i]) found[i] = lookups[i].is_found(table);
  }
}

}  // namespace

std::optional<Geometry> FingerprintLayout::size(uint64_t capacity, double error_rate) {
  if (capacity > kMaxLayerCapacity || error_rate < kMinErrorRate) return std::nullopt;
  const auto model = solve_bucket_model(capacity, error_rate);
  if (!model || model->line_count > double(BitArray::kMaxBits / kLineBits)) return std::nullopt;
  Geometry geometry;
  geometry.bit_count = static_cast<uint64_t>(model->line_count) * kLineBits;
  geometry.hash_count = static_cast<uint16_t>(model->slots_per_bucket);
  geometry.lines_per_lookup = 2;
  geometry.cell_bits = static_cast<uint16_t>(model->fingerprint_bits);
  return geometry;
}

double FingerprintLayout::layer_error_rate(const FilterParameters& parameters, uint32_t index) {
  const double rate = NativeLayout::layer_error_rate(parameters, index);
  return rate < kMinErrorRate ? 0 : rate;
}

bool FingerprintLayout::is_valid(const Geometry& geometry) {
  return geometry.bit_count % kLineBits == 0 && geometry.lines_per_lookup == 2 &&
         BucketModel::is_shape(geometry.hash_count, geometry.cell_bits);
}

double FingerprintLayout::predicted_error(const Geometry& geometry, uint64_t item_count) {
  const BucketModel model{double(geometry.bit_count / kLineBits), geometry.hash_count,
                          geometry.cell_bits};
  return model.error_rate(double(item_count));
}

uint64_t FingerprintLayout::slot_count(const Geometry& geometry) {
  return Table(nullptr, geometry).bucket_count() * geometry.hash_count;
}

void FingerprintLayout::prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  const Table table(words, geometry);
  const Lookup lookup(table, hash);
  table.prefetch(lookup.first);
  table.prefetch(lookup.second);
}

bool FingerprintLayout::check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  const Table table(words, geometry);
  return Lookup(table, hash).is_found(table);
}

void FingerprintLayout::check_group(std::span<const ArrayView> arrays,
                                    std::span<const ItemHash> hashes, std::span<bool> found) {
  assert(hashes.size() <= kGroupItems && found.size() >= hashes.size());
  for (const ArrayView& array : arrays) check_array(array, hashes, found);
}

Insertion FingerprintLayout::insert(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                                    ItemHash hash) {
  if (check(words, geometry, hash)) return Insertion::kPresent;
  return insert_new(words, geometry, capacity, hash) ? Insertion::kAdded : Insertion::kNoRoom;
}

bool FingerprintLayout::insert_new(uint64_t* words, const Geometry& geometry, uint64_t /*capacity*/,
                                   ItemHash hash) {
  const Table table(words, geometry);
  const uint64_t fingerprint = table.fingerprint(hash);
  const uint64_t first = table.bucket(hash);
  return fill_free_slot(words, table, first, fingerprint) ||
         fill_free_slot(words, table, table.other_bucket(first, fingerprint), fingerprint) ||
         displace(words, table, geometry.hash_count, hash);
}

Removal FingerprintLayout::remove(uint64_t* words, const Geometry& geometry, ItemHash hash) {
  const Table table(words, geometry);
  const Lookup lookup(table, hash);
  for (const Place& place : {lookup.first, lookup.second}) {
    const uint128_t marked = table.slots_with(table.load(place), lookup.fingerprint);
    if (marked == 0) continue;
    exchange(words, table, place, table.lowest(marked), 0);
    return Removal::kGone;
  }
  return Removal::kAbsent;
}

}  // namespace core::bloom
