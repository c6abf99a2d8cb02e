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
  uint128_t highs;      // the highest
  uint64_t reciprocal;  // 2^64 over the buckets of a line, rounded up
  uint32_t buckets_per_line;
  uint32_t bucket_bits;
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
      shape.highs = shape.lows << (bits - 1);
      shape.bucket_bits = slots * bits;
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

// Where a bucket begins: some bytes of its line, and how many bits of them lie before it.
struct Place {
  uint64_t byte;
  unsigned shift;
};

// Buckets are read as one Word each: 64 bits where they are narrow, else 128.
template <class Word>
class Table {
 public:
  // With up to seven bits before it a bucket must fit into a word.
  static constexpr unsigned kBucketBitsMax = sizeof(Word) * 8 - 7;

  Table(const uint64_t* words, const Geometry& geometry)
      : words_(words),
        shape_(kShapes[geometry.hash_count][geometry.cell_bits]),
        bits_(geometry.cell_bits),
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
    const uint64_t other = sum - bucket;
    return sum < bucket ? other + bucket_count_ : other;
  }

  Place place(uint64_t bucket) const {
    const auto line = static_cast<uint64_t>((uint128_t{bucket} * shape_.reciprocal) >> 64);
    const uint64_t index = bucket - line * shape_.buckets_per_line;
    const auto bit = static_cast<unsigned>(index) * shape_.bucket_bits;
    // The last word of a line holds the end of it, so nothing is read behind it. No branch on
    // whether it is that one, which nobody can guess.
    constexpr int kLastLoad = kLineBits / 8 - sizeof(Word);
    const int past = static_cast<int>(bit / 8) - kLastLoad;
    const unsigned byte = bit / 8 - static_cast<unsigned>(past & ~(past >> 31));
    return {line * (kLineBits / 8) + byte, bit - byte * 8};
  }
  void prefetch(const Place& place) const { core::prefetch(bytes() + place.byte); }

  // The slots of a bucket, lowest first, and above them bits of other buckets.
  Word load(const Place& place) const {
    Word word;
    std::memcpy(&word, bytes() + place.byte, sizeof(word));
    return word >> place.shift;
  }

  // What slots_with() looks for.
  Word pattern(uint64_t value) const { return lows() * value; }
  // The top bit of each slot with this value. Exact up to the lowest slot that has it; slots above
  // that one may be marked wrongly, which nobody asks for.
  Word slots_with(Word bucket, Word pattern) const { return zeros(bucket ^ pattern) & highs(); }
  // Whether one of two buckets has such a slot.
  bool holds(Word first, Word second, Word pattern) const {
    return ((zeros(first ^ pattern) | zeros(second ^ pattern)) & highs()) != 0;
  }

  // Bits below the lowest marked slot.
  unsigned lowest(Word marked) const {
    const auto low = static_cast<uint64_t>(marked);
    int top = std::countr_zero(low);
    if constexpr (sizeof(Word) > sizeof(low)) {
      if (low == 0) top = 64 + std::countr_zero(static_cast<uint64_t>(marked >> 64));
    }
    return static_cast<unsigned>(top) + 1 - bits_;
  }

  // Fills the slot that begins `slot_bits` behind the bucket, if it is free, or frees it, if it
  // holds the value. REQUIRES: the words may be written.
  void flip(const Place& place, unsigned slot_bits, uint64_t value) const {
    std::byte* const at = const_cast<std::byte*>(bytes()) + place.byte;
    Word word;
    std::memcpy(&word, at, sizeof(word));
    word ^= Word{value} << (place.shift + slot_bits);
    std::memcpy(at, &word, sizeof(word));
  }

  // Puts `value` into the slot that begins `slot_bits` behind the bucket; returns what was there.
  // REQUIRES: the words may be written.
  uint64_t exchange(const Place& place, unsigned slot_bits, uint64_t value) const {
    std::byte* const at = const_cast<std::byte*>(bytes()) + place.byte;
    Word word;
    std::memcpy(&word, at, sizeof(word));
    const unsigned shift = place.shift + slot_bits;
    const Word mask = (Word{1} << bits_) - 1;
    const auto before = static_cast<uint64_t>(word >> shift & mask);
    word = (word & ~(mask << shift)) | (Word{value} << shift);
    std::memcpy(at, &word, sizeof(word));
    return before;
  }

  unsigned bits() const { return bits_; }
  unsigned slots() const { return shape_.bucket_bits / bits_; }

 private:
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words_); }
  Word lows() const { return static_cast<Word>(shape_.lows); }
  Word highs() const { return static_cast<Word>(shape_.highs); }
  Word zeros(Word slots) const { return (slots - lows()) & ~slots; }

  const uint64_t* words_;
  const BucketShape& shape_;
  unsigned bits_;
  uint64_t bucket_count_;
};

using NarrowTable = Table<uint64_t>;
using WideTable = Table<uint128_t>;
static_assert(BucketModel::kBucketBitsMax <= WideTable::kBucketBitsMax);

// Calls function(table) with the narrower of the two that the shape allows.
template <class Function>
[[gnu::always_inline]] inline auto with_table(const uint64_t* words, const Geometry& geometry,
                                              Function&& function) {
  const unsigned bucket_bits = unsigned{geometry.hash_count} * geometry.cell_bits;
  return bucket_bits <= NarrowTable::kBucketBitsMax ? function(NarrowTable(words, geometry))
                                                    : function(WideTable(words, geometry));
}

// Into the lowest free slot of the bucket; false when there is none.
template <class Table>
bool fill_free_slot(const Table& table, uint64_t bucket, uint64_t fingerprint) {
  const Place place = table.place(bucket);
  const auto free = table.slots_with(table.load(place), 0);
  if (free == 0) return false;
  table.flip(place, table.lowest(free), fingerprint);
  return true;
}

// Both buckets are full: the fingerprint takes the place of one there, which moves to its other
// bucket and may displace one in turn. Which one goes follows from the item alone, so that a replay
// does the same. Without a free slot after all moves they are undone.
template <class Table>
bool displace(const Table& table, ItemHash hash) {
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
    move = {bucket, static_cast<unsigned>(in_range(random, table.slots())) * table.bits()};
    fingerprint = table.exchange(table.place(bucket), move.slot_bits, fingerprint);
    bucket = table.other_bucket(bucket, fingerprint);
    if (fill_free_slot(table, bucket, fingerprint)) return true;
  }
  for (size_t i = moves.size(); i > 0; --i) {
    const Move& move = moves[i - 1];
    fingerprint = table.exchange(table.place(move.bucket), move.slot_bits, fingerprint);
  }
  assert(fingerprint == table.fingerprint(hash));
  return false;
}

template <class Table>
bool insert_into(const Table& table, ItemHash hash) {
  const uint64_t fingerprint = table.fingerprint(hash);
  const uint64_t first = table.bucket(hash);
  return fill_free_slot(table, first, fingerprint) ||
         fill_free_slot(table, table.other_bucket(first, fingerprint), fingerprint) ||
         displace(table, hash);
}

// An item's two places in an array, which may be on their way to the cache.
struct Lookup {
  Lookup() = default;
  template <class Table>
  Lookup(const Table& table, ItemHash hash) : fingerprint(table.fingerprint(hash)) {
    const uint64_t bucket = table.bucket(hash);
    first = table.place(bucket);
    second = table.place(table.other_bucket(bucket, fingerprint));
  }

  template <class Table>
  void prefetch(const Table& table) const {
    table.prefetch(first);
    table.prefetch(second);
  }
  // No branch between the two, so that both lines are fetched at once.
  template <class Table>
  bool is_found(const Table& table) const {
    return table.holds(table.load(first), table.load(second), table.pattern(fingerprint));
  }

  uint64_t fingerprint;
  Place first;
  Place second;
};

// False when the item is not there.
template <class Table>
bool free_slot(const Table& table, const Lookup& lookup) {
  const auto pattern = table.pattern(lookup.fingerprint);
  const auto in_first = table.slots_with(table.load(lookup.first), pattern);
  const auto in_second = table.slots_with(table.load(lookup.second), pattern);
  if ((in_first | in_second) == 0) return false;
  // No branch on which bucket it is, which nobody can guess.
  const bool is_first = in_first != 0;
  table.flip(is_first ? lookup.first : lookup.second, table.lowest(is_first ? in_first : in_second),
             lookup.fingerprint);
  return true;
}

template <class Table>
void check_array(const Table& table, bool fetches, std::span<const ItemHash> hashes,
                 std::span<bool> found) {
  if (!fetches) {
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (!found[i]) found[i] = Lookup(table, hashes[i]).is_found(table);
    }
    return;
  }
  std::array<Lookup, kGroupItems> lookups;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (found[i]) continue;
    lookups[i] = Lookup(table, hashes[i]);
    lookups[i].prefetch(table);
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
  return WideTable(nullptr, geometry).bucket_count() * geometry.hash_count;
}

void FingerprintLayout::prefetch(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  with_table(words, geometry, [&](const auto& table) { Lookup(table, hash).prefetch(table); });
}

bool FingerprintLayout::is_sound(const BitArray& bits, const Geometry& geometry,
                                 uint64_t item_count) {
  constexpr uint64_t kLineWords = kLineBits / 64;
  const unsigned slots =
      kLineBits / (geometry.hash_count * geometry.cell_bits) * unsigned{geometry.hash_count};
  const uint64_t mask = (uint64_t{1} << geometry.cell_bits) - 1;
  const uint64_t all_slots = slot_count(geometry);
  uint64_t taken = 0;
  bool is_clean = true;
  const auto count_line = [&](const uint64_t* line, uint64_t slots_used) {
    for (unsigned bit = 0; bit < kLineBits;) {
      const unsigned width = bit < slots * geometry.cell_bits ? geometry.cell_bits : 1;
      const unsigned shift = bit % 64;
      uint64_t value = line[bit / 64] >> shift;
      if (shift + width > 64) value |= line[bit / 64 + 1] << (64 - shift);
      const bool is_taken = (value & (width == 1 ? 1 : mask)) != 0;
      const bool is_slot = width != 1 && bit / width < slots_used;
      taken += is_taken && is_slot;
      is_clean = is_clean && (!is_taken || is_slot);
      bit += width;
    }
  };
  bits.visit_data(0, bits.bytes().size(), [&](uint64_t offset, std::span<const std::byte> data) {
    const uint64_t first = offset / (kLineBits / 8);
    const uint64_t count = data.size() / (kLineBits / 8);
    for (uint64_t line = first; line < first + count; ++line) {
      const uint64_t before = line * slots;
      const uint64_t left = all_slots - std::min(all_slots, before);
      count_line(bits.words() + line * kLineWords, std::min<uint64_t>(left, slots));
    }
  });
  // None is taken while a filter is being loaded in chunks, whose counts come first.
  return is_clean && (taken == item_count || taken == 0);
}

bool FingerprintLayout::check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return with_table(words, geometry,
                    [&](const auto& table) { return Lookup(table, hash).is_found(table); });
}

void FingerprintLayout::check_group(std::span<const ArrayView> arrays,
                                    std::span<const ItemHash> hashes, std::span<bool> found) {
  assert(hashes.size() <= kGroupItems && found.size() >= hashes.size());
  for (const ArrayView& array : arrays) {
    const bool fetches = array.geometry.size_bytes() >= kCachedBytes;
    with_table(array.words, array.geometry,
               [&](const auto& table) { check_array(table, fetches, hashes, found); });
  }
}

Insertion FingerprintLayout::insert(uint64_t* words, const Geometry& geometry,
                                    uint64_t /*capacity*/, ItemHash hash) {
  return with_table(words, geometry, [&](const auto& table) {
    if (Lookup(table, hash).is_found(table)) return Insertion::kPresent;
    return insert_into(table, hash) ? Insertion::kAdded : Insertion::kNoRoom;
  });
}

bool FingerprintLayout::insert_new(uint64_t* words, const Geometry& geometry, uint64_t /*capacity*/,
                                   ItemHash hash) {
  return with_table(words, geometry, [&](const auto& table) { return insert_into(table, hash); });
}

Removal FingerprintLayout::remove(uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return with_table(words, geometry, [&](const auto& table) {
    return free_slot(table, Lookup(table, hash)) ? Removal::kGone : Removal::kAbsent;
  });
}

uint64_t FingerprintLayout::remove_group(uint64_t* words, const Geometry& geometry,
                                         std::span<const ItemHash> hashes,
                                         std::span<Removal> outcomes) {
  assert(hashes.size() <= kGroupItems && outcomes.size() >= hashes.size());
  const bool fetches = geometry.size_bytes() >= kCachedBytes;
  uint64_t gone = 0;
  with_table(words, geometry, [&](const auto& table) {
    std::array<Lookup, kGroupItems> lookups;
    for (size_t i = 0; i < hashes.size(); ++i) {
      lookups[i] = Lookup(table, hashes[i]);
      if (fetches) lookups[i].prefetch(table);
    }
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (outcomes[i] != Removal::kAbsent || !free_slot(table, lookups[i])) continue;
      outcomes[i] = Removal::kGone;
      ++gone;
    }
  });
  return gone;
}

}  // namespace core::bloom
