// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/bucket_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace core::bloom {
namespace {

constexpr unsigned kBitsPerLine = 512;

// Limits of tables, indexed by slots per bucket. `load` is the share of slots that large tables can
// fill. `slack` is the number of items by which small tables fall below that share. Both values are
// measured (docs/bloom_math.md), with a small safety margin.
struct Reach {
  double load;
  double slack;
};
constexpr std::array<Reach, BucketModel::kSlotsMax + 1> kReach{
    {{}, {}, {0.83, 30}, {0.91, 18}, {0.94, 12}, {0.955, 8}, {0.965, 6}, {0.97, 6}, {0.975, 6}}};

double buckets_per_line(unsigned slots_per_bucket, unsigned fingerprint_bits) {
  return kBitsPerLine / (slots_per_bucket * fingerprint_bits);
}

double fingerprint_count(unsigned bits) {
  return std::ldexp(1, static_cast<int>(bits)) - 1;
}

double even(double count) {
  return 2 * std::floor(count / 2);
}

// Approximate minimum number of buckets for `items`.
double buckets_for(double items, unsigned slots) {
  if (items <= 2 * slots) return 2;
  const Reach& reach = kReach[slots];
  // Solves load * slots * m - sqrt(m) - slack >= items for sqrt(m).
  const double filled = reach.load * slots;
  const double root = (1 + std::sqrt(1 + 4 * filled * (items + reach.slack))) / (2 * filled);
  return root * root;
}

}  // namespace

double BucketModel::bucket_count() const {
  return even(line_count * buckets_per_line(slots_per_bucket, fingerprint_bits));
}

double BucketModel::error_rate(double item_count) const {
  // A lookup compares the item's fingerprint with all fingerprints of two buckets
  // (docs/bloom_math.md).
  return std::min(1.0, 2 * item_count / (bucket_count() * fingerprint_count(fingerprint_bits)));
}

double BucketModel::reach() const {
  const double buckets = bucket_count();
  const Reach& reach = kReach[slots_per_bucket];
  const double large = reach.load * slots_per_bucket * buckets - std::sqrt(buckets) - reach.slack;
  // An insertion cannot fail before two buckets are full. So every table can hold at least as many
  // items as two buckets have slots.
  return std::max(2.0 * slots_per_bucket, std::floor(large));
}

std::optional<BucketModel> solve_bucket_model(uint64_t capacity, double error_rate) {
  const auto items = static_cast<double>(capacity);
  std::optional<BucketModel> best;
  for (unsigned slots = BucketModel::kSlotsMin; slots <= BucketModel::kSlotsMax; ++slots) {
    const double buckets_to_reach = buckets_for(items, slots);
    for (unsigned bits = BucketModel::kBitsMin; BucketModel::is_shape(slots, bits); ++bits) {
      const double buckets_to_keep = 2 * items / (error_rate * fingerprint_count(bits));
      // Short fingerprints need more buckets to keep the error rate. If they need more than twice
      // the buckets that hold the items, they are skipped: longer fingerprints take less memory.
      if (buckets_to_keep > 2 * buckets_to_reach + 2) continue;
      const double buckets = std::max(buckets_to_keep, buckets_to_reach);
      BucketModel model{std::ceil(buckets / buckets_per_line(slots, bits)), slots, bits};
      while (model.reach() < items || model.error_rate(items) > error_rate) ++model.line_count;
      const bool is_better =
          !best || model.line_count < best->line_count ||
          (model.line_count == best->line_count && model.reach() > best->reach());
      if (is_better) best = model;
      if (buckets_to_keep <= buckets_to_reach) break;
    }
  }
  return best;
}

}  // namespace core::bloom
