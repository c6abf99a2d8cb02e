// SPDX-License-Identifier: MIT
#include "core/bloom/fingerprint_layout.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

#include "core/bloom/arrays/bucket_model.h"
#include "core/bloom/line_kernels.h"
#include "core/fast_range.h"

namespace core::bloom {
namespace {

// Called when both buckets of an item are full. The item's fingerprint takes the slot of another
// fingerprint, which moves to its alternate bucket and may displace a third, and so on. A random
// generator chooses the slots. Its seed is the item's hash, so a replay of the same insertions
// gives the same table. If kMovesMax moves do not find a free slot, all moves are undone.
template <class Table>
bool displace(const Table& table, ItemHash hash) {
  struct Move {
    uint64_t bucket;
    unsigned slot;
  };
  std::array<Move, FingerprintLayout::kMovesMax> moves;
  uint64_t fingerprint = table.fingerprint(hash.second);
  uint64_t bucket = table.bucket(hash.first);
  uint64_t random = hash.first ^ hash.second;
  for (Move& move : moves) {
    // A step of Knuth's MMIX generator. Only its high bits are random enough.
    random = random * 6364136223846793005 + 1442695040888963407;
    move = {bucket, static_cast<unsigned>(fast_range(random, table.slot_count()))};
    fingerprint = table.exchange(bucket, move.slot, fingerprint);
    bucket = table.other_bucket(bucket, fingerprint);
    if (table.fill_slot(bucket, fingerprint)) return true;
  }
  for (size_t i = moves.size(); i > 0; --i) {
    fingerprint = table.exchange(moves[i - 1].bucket, moves[i - 1].slot, fingerprint);
  }
  assert(fingerprint == table.fingerprint(hash.second));
  return false;
}

template <class Table>
bool insert_into(const Table& table, ItemHash hash) {
  const uint64_t fingerprint = table.fingerprint(hash.second);
  const uint64_t first = table.bucket(hash.first);
  return table.fill_slot(first, fingerprint) ||
         table.fill_slot(table.other_bucket(first, fingerprint), fingerprint) ||
         displace(table, hash);
}

}  // namespace

std::optional<Geometry> FingerprintLayout::size(uint64_t capacity, double error_rate) {
  if (capacity > kMaxLayerCapacity || error_rate < kMinErrorRate) return std::nullopt;
  const auto model = solve_bucket_model(capacity, error_rate);
  if (!model || model->line_count > double(BitArray::kMaxBits / kLineBits)) return std::nullopt;
  return Geometry{.bit_count = static_cast<uint64_t>(model->line_count) * kLineBits,
                  .hash_count = static_cast<uint16_t>(model->slots_per_bucket),
                  .lines_per_lookup = 2,
                  .cell_bits = static_cast<uint16_t>(model->fingerprint_bits)};
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
  return with_fingerprint_table(nullptr, geometry, [&](const auto& table) {
    return table.bucket_count() * geometry.hash_count;
  });
}

bool FingerprintLayout::is_sound(const BitArray& bits, const Geometry& geometry,
                                 uint64_t item_count, Loaded loaded) {
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
  if (loaded == Loaded::kPartly) return is_clean && taken <= item_count;
  return is_clean && (taken == item_count || taken == 0);
}

void FingerprintLayout::check_group(std::span<const ArrayView> arrays,
                                    std::span<const ItemHash> hashes, std::span<bool> found) {
  const FingerprintKernels& kernels = fingerprint_kernels();
  for (const ArrayView& array : arrays) kernels.check_group(array, hashes, found);
}

Insertion FingerprintLayout::insert(uint64_t* words, const Geometry& geometry,
                                    uint64_t /*capacity*/, ItemHash hash) {
  return with_fingerprint_table(words, geometry, [&](const auto& table) {
    if (table.holds(table.places_of(hash.first, hash.second))) return Insertion::kPresent;
    return insert_into(table, hash) ? Insertion::kAdded : Insertion::kNoRoom;
  });
}

bool FingerprintLayout::insert_new(uint64_t* words, const Geometry& geometry, uint64_t /*capacity*/,
                                   ItemHash hash) {
  return with_fingerprint_table(words, geometry,
                                [&](const auto& table) { return insert_into(table, hash); });
}

}  // namespace core::bloom
