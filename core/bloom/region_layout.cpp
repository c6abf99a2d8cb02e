// SPDX-License-Identifier: MIT
#include "core/bloom/region_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "core/bloom/line_kernels.h"
#include "core/fast_range.h"

namespace core::bloom {
namespace {

// Counters of an array, stored in the three words after its last line.
enum CountWord : size_t { kOnes, kOnesMax, kFlags, kCountWords };
constexpr uint64_t kCountBits = 64 * kCountWords;

// Number of bits of a line that items can set, indexed by r, the number of bits per region. The
// other bits of the line are flags.
constexpr auto kItemBits = [] {
  std::array<uint16_t, kMaxRegionBits + 1> item_bits{};
  for (unsigned r = 0; r <= kMaxRegionBits; ++r) {
    item_bits[r] = static_cast<uint16_t>(kLineBits * r / (r + 1));
  }
  return item_bits;
}();

unsigned item_bits_of(const Geometry& geometry) {
  return kItemBits[geometry.cell_bits];
}

unsigned regions_of_line(const Geometry& geometry) {
  return (item_bits_of(geometry) + geometry.cell_bits - 1) / geometry.cell_bits;
}

uint64_t line_count_of(const Geometry& geometry) {
  return geometry.bit_count / kLineBits;
}

LineModel model_of(const Geometry& geometry) {
  return {double(line_count_of(geometry)), geometry.lines_per_lookup,
          LineShape(geometry).bits_per_line, item_bits_of(geometry)};
}

// Draws random numbers below item_bits from `word`, which is derived from the item's hash. Each
// draw multiplies the word by item_bits. The high half of the product is the number, the low half
// is the next word.
class PositionDraw {
 public:
  PositionDraw(uint64_t word, unsigned item_bits) : word_(word), item_bits_(item_bits) {}
  unsigned next() {
    const uint128_t product = uint128_t{word_} * item_bits_;
    word_ = static_cast<uint64_t>(product);
    return static_cast<unsigned>(product >> 64);
  }

 private:
  uint64_t word_;
  unsigned item_bits_;
};

class RegionLine {
 public:
  using Walk = LineWalk;

  RegionLine() = default;
  explicit RegionLine(const Geometry& geometry)
      : bits_per_line_(LineShape(geometry).bits_per_line), item_bits_(item_bits_of(geometry)) {}

  bool all_set(const uint64_t* words, uint64_t word) const {
    PositionDraw draw(word, item_bits_);
    uint64_t all = 1;
    for (unsigned i = 0; i < bits_per_line_; ++i) {
      const unsigned position = draw.next();
      all &= words[position / 64] >> (position % 64);
    }
    return (all & 1) != 0;
  }

  struct Pattern {
    explicit Pattern(uint64_t item_word) : word(item_word) {}
    uint64_t word;
  };
  bool all_set(const uint64_t* words, const Pattern& pattern) const {
    return all_set(words, pattern.word);
  }

 private:
  unsigned bits_per_line_ = 0;
  unsigned item_bits_ = 0;
};

// One bit of a line.
struct BitRef {
  uint64_t* word = nullptr;
  uint64_t mask = 0;

  static BitRef at(uint64_t* line, unsigned position) {
    return {line + position / 64, uint64_t{1} << (position % 64)};
  }
  bool is_set() const { return (*word & mask) != 0; }
  // Sets the bit. Returns true if the bit was clear before.
  bool set() const {
    const bool was_clear = !is_set();
    *word |= mask;
    return was_clear;
  }
  // Clears the bit. Returns true if the bit was set before.
  bool clear() const {
    const bool was_set = is_set();
    *word &= ~mask;
    return was_set;
  }
};

// An item's bits in an array, possibly with repetitions, and the flags of their regions.
class ItemBits {
 public:
  struct Bit {
    BitRef bit;
    BitRef flag;
    bool was_set = false;
  };

  ItemBits(uint64_t* words, const Geometry& geometry, ItemHash hash) {
    const unsigned lines = geometry.lines_per_lookup;
    const unsigned bits_in_line = LineShape(geometry).bits_per_line;
    const unsigned item_bits = item_bits_of(geometry);
    LineWalk walk(hash, geometry);
    prefetch_lines(words, walk, lines);
    for (unsigned i = 0; i < lines; ++i, walk.advance()) {
      uint64_t* const line = words + walk.word_index();
      PositionDraw draw(walk.positions(), item_bits);
      for (unsigned j = 0; j < bits_in_line; ++j) {
        const unsigned position = draw.next();
        const BitRef bit = BitRef::at(line, position);
        const BitRef flag = BitRef::at(line, item_bits + position / geometry.cell_bits);
        bits_[count_++] = {bit, flag, bit.is_set()};
        all_set_ = all_set_ && bit.is_set();
      }
    }
  }

  bool all_set() const { return all_set_; }
  std::span<const Bit> bits() const { return std::span(bits_).first(count_); }

 private:
  std::array<Bit, size_t{kMaxLinesPerLookup} * kMaxBitsPerLine> bits_;
  size_t count_ = 0;
  bool all_set_ = true;
};

template <class Word>
Word* count_words(Word* words, const Geometry& geometry) {
  return words + geometry.bit_count / 64 - kCountWords;
}

// Expected number of set bits when the item count equals the layer's capacity, plus five standard
// deviations. A new item that is a false positive is not counted, so more items are inserted than
// counted.
uint64_t ones_max(const Geometry& geometry, uint64_t capacity) {
  constexpr int kSteps = 16;
  const LineModel model = model_of(geometry);
  const auto tries_per_count = [&](double tried) { return 1 / (1 - model.error_rate(tried)); };
  const double step = double(capacity) / kSteps;
  double tried = 0;
  // Integrates the insertions per counted item by Heun's method. The error rate is convex, so the
  // truncation error only makes the result larger.
  for (int i = 0; i < kSteps; ++i) {
    const double before = tries_per_count(tried);
    tried += step * (before + tries_per_count(tried + step * before)) / 2;
  }
  const double limit = model.expected_ones(tried) + 5 * std::sqrt(model.variance_of_ones(tried));
  const uint64_t bits = line_count_of(geometry) * item_bits_of(geometry);
  return std::min(bits, static_cast<uint64_t>(limit) + 1);
}

// Computes probabilities about the bits of a line that other items have set. `items` is the number
// of other items whose bits lie in the line.
struct OtherBits {
  OtherBits(const Geometry& geometry, double items)
      : throws(items * LineShape(geometry).bits_per_line),
        line_bits(item_bits_of(geometry)),
        own_pairs(throws * (LineShape(geometry).bits_per_line - 1) / 2 / line_bits / line_bits) {}

  double throws;
  double line_bits;
  // Expected number of pairs in which two draws for the same item hit a given bit. Such a pair is
  // not a collision between items.
  double own_pairs;

  // Probability that none of `clear` chosen bits is hit, and that each of `single` other bits is
  // hit at most once. With T throws at D bits, it is the sum over the number t of the `single` bits
  // that are hit: C(single, t) T! / (T - t)! D^-t (rest / D)^(T - t), where rest = D - clear -
  // single.
  double unshared(double clear, double single) const {
    const double rest = std::max(line_bits - clear - single, 1e-6);
    double log_scale = throws * std::log(rest / line_bits);
    double term = 1;
    double sum = 1;
    for (double t = 0; t < single && t < throws; ++t) {
      term *= (single - t) / (t + 1) * (throws - t) / rest;
      sum += term;
      constexpr double kLarge = 0x1p600;
      if (sum < kLarge) continue;
      term /= kLarge;
      sum /= kLarge;
      log_scale += std::log(kLarge);
    }
    return std::min(1.0, sum * std::exp(log_scale + single * own_pairs));
  }
};

// Probability that the flag is set in every region that contains one of an item's bits in a line.
// Computed by inclusion and exclusion over the regions. Several bits may be in one region.
double stuck_chance(const Geometry& geometry, const OtherBits& others) {
  const unsigned bits = LineShape(geometry).bits_per_line;
  const double regions = regions_of_line(geometry);
  std::array<double, kMaxBitsPerLine + 1> distinct{1};
  for (unsigned i = 0; i < bits; ++i) {
    for (unsigned d = i + 1; d >= 1; --d) {
      distinct[d] = (distinct[d] * d + distinct[d - 1] * (regions - d + 1)) / regions;
    }
    distinct[0] = 0;
  }
  double chance = 0;
  for (unsigned d = 1; d <= bits; ++d) {
    if (distinct[d] <= 0) continue;
    const double own = std::min(double(bits) / d, double(geometry.cell_bits));
    double stuck = 1;
    double choose = 1;
    for (unsigned i = 1; i <= d; ++i) {
      choose *= -double(d - i + 1) / i;
      stuck += choose * others.unshared(i * own, i * (geometry.cell_bits - own));
    }
    chance += distinct[d] * std::max(0.0, stuck);
  }
  return chance;
}

// Returns the mean of function(OtherBits) over the lines. The number of items per line has
// approximately a Poisson distribution.
template <class Function>
double mean_over_lines(const Geometry& geometry, double item_count, Function&& function) {
  const double mean = item_count * geometry.lines_per_lookup / double(line_count_of(geometry));
  if (!(mean > 0)) return function(OtherBits(geometry, 0));
  constexpr double kDeviations = 6;
  const double spread = kDeviations * (std::sqrt(mean) + 1);
  double sum = 0;
  for (double n = std::max(0.0, std::floor(mean - spread)); n <= mean + spread; ++n) {
    sum +=
        std::exp(n * std::log(mean) - mean - std::lgamma(n + 1)) * function(OtherBits(geometry, n));
  }
  return sum;
}

// Expected fraction of the regions that have their flag set. A flag is set when two items share a
// bit of its region.
double flag_share(const Geometry& geometry, double item_count) {
  return 1 - mean_over_lines(geometry, item_count, [&](const OtherBits& others) {
           return others.unshared(0, geometry.cell_bits);
         });
}

uint64_t ones_in(std::span<const uint64_t> line, unsigned from, unsigned to) {
  uint64_t ones = 0;
  for (unsigned bit = from; bit < to;) {
    const unsigned end = std::min(to, (bit / 64 + 1) * 64);
    const uint64_t mask = (end - bit == 64 ? ~uint64_t{0} : (uint64_t{1} << (end - bit)) - 1);
    ones += static_cast<unsigned>(std::popcount(line[bit / 64] >> (bit % 64) & mask));
    bit = end;
  }
  return ones;
}

}  // namespace

std::optional<Geometry> RegionLayout::size(uint64_t capacity, double error_rate,
                                           unsigned region_bits) {
  if (capacity > kMaxLayerCapacity || region_bits == 0 || region_bits > kMaxRegionBits) {
    return std::nullopt;
  }
  const double rate = std::max(error_rate, NativeLayout::kMinErrorRate);
  auto geometry =
      geometry_of(solve_line_model(capacity, rate, {.line_bits = kItemBits[region_bits]}));
  if (!geometry || geometry->bit_count > BitArray::kMaxBits - kLineBits) return std::nullopt;
  geometry->bit_count += kCountBits;
  geometry->cell_bits = static_cast<uint16_t>(region_bits);
  return geometry;
}

bool RegionLayout::is_valid(const Geometry& geometry) {
  const bool has_lines =
      geometry.bit_count > kLineBits && geometry.bit_count % kLineBits == kCountBits;
  return has_lines && geometry.cell_bits >= 1 && geometry.cell_bits <= kMaxRegionBits &&
         has_valid_lines(geometry, kMaxBitsPerLine);
}

double RegionLayout::predicted_error(const Geometry& geometry, uint64_t item_count) {
  return model_of(geometry).error_rate(double(item_count));
}

double RegionLayout::predicted_residue(const Geometry& geometry, double item_count) {
  const double of_line = mean_over_lines(geometry, item_count, [&](const OtherBits& others) {
    return stuck_chance(geometry, others);
  });
  // The probability for one line is raised to the number of lines, as if the lines of an item were
  // independent.
  return std::clamp(std::pow(of_line, int{geometry.lines_per_lookup}), 0.0, 1.0);
}

double RegionLayout::fill_now(const uint64_t* words, const Geometry& geometry,
                              uint64_t /*item_count*/) {
  const double bits = double(line_count_of(geometry)) * item_bits_of(geometry);
  return std::min(1.0, double(count_words(words, geometry)[kOnes]) / bits);
}

double RegionLayout::items_now(const uint64_t* words, const Geometry& geometry,
                               uint64_t /*item_count*/) {
  return model_of(geometry).items_of_ones(double(count_words(words, geometry)[kOnes]));
}

double RegionLayout::error_now(const uint64_t* words, const Geometry& geometry,
                               uint64_t item_count) {
  return model_of(geometry).error_rate(items_now(words, geometry, item_count));
}

double RegionLayout::flag_share_now(const uint64_t* words, const Geometry& geometry) {
  const double regions = double(line_count_of(geometry)) * regions_of_line(geometry);
  return double(count_words(words, geometry)[kFlags]) / regions;
}

// Estimates the share of items that cannot be removed, from the share of flags that are set. The
// item count does not suffice, because removals do not clear flags. The function finds the number
// of items that is expected to set this many flags, to a percent, and predicts the share for it.
double RegionLayout::residue_of(const Geometry& geometry, double share) {
  if (!(share > 0)) return 0;
  if (share >= 1) return 1;
  double low = 0;
  double high = double(geometry.bit_count);
  while (high - low > 1 && high > low * 1.01) {
    const double middle = (low + high) / 2;
    (flag_share(geometry, middle) < share ? low : high) = middle;
  }
  return predicted_residue(geometry, (low + high) / 2);
}

bool RegionLayout::is_sound(const BitArray& bits, const Geometry& geometry, uint64_t /*item_count*/,
                            Loaded loaded) {
  constexpr uint64_t kLineBytes = kLineBits / 8;
  const unsigned item_bits = item_bits_of(geometry);
  const unsigned used_bits = item_bits + regions_of_line(geometry);
  uint64_t ones = 0;
  uint64_t flags = 0;
  uint64_t strays = 0;
  // A page holds whole lines, so every visited range of bytes also holds whole lines.
  const uint64_t lines_end = line_count_of(geometry) * kLineBytes;
  bits.visit_data(0, lines_end, [&](uint64_t offset, std::span<const std::byte> data) {
    const uint64_t* const words = bits.words() + offset / 8;
    for (size_t i = 0; i + 8 <= data.size() / 8; i += 8) {
      const std::span<const uint64_t> line(words + i, 8);
      ones += ones_in(line, 0, item_bits);
      flags += ones_in(line, item_bits, used_bits);
      strays += ones_in(line, used_bits, kLineBits);
    }
  });
  const uint64_t* const counts = count_words(bits.words(), geometry);
  const uint64_t most = line_count_of(geometry) * item_bits;
  const bool agrees = loaded == Loaded::kPartly ? counts[kOnes] <= ones && counts[kFlags] <= flags
                                                : counts[kOnes] == ones && counts[kFlags] == flags;
  return strays == 0 && agrees && counts[kOnesMax] <= most;
}

bool RegionLayout::check(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
  return check_item(words, geometry, RegionLine(geometry), hash);
}

void RegionLayout::check_group(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                               std::span<bool> found) {
  check_items<RegionLine>(arrays, hashes, found);
}

Insertion RegionLayout::insert(uint64_t* words, const Geometry& geometry, uint64_t capacity,
                               ItemHash hash) {
  const ItemBits item(words, geometry, hash);
  if (item.all_set()) return Insertion::kPresent;
  uint64_t* const counts = count_words(words, geometry);
  const uint64_t most = counts[kOnesMax] != 0 ? counts[kOnesMax] : ones_max(geometry, capacity);
  if (counts[kOnes] >= most) return Insertion::kNoRoom;
  counts[kOnesMax] = most;
  for (const ItemBits::Bit& bit : item.bits()) {
    if (bit.was_set) {
      counts[kFlags] += bit.flag.set();
    } else {
      counts[kOnes] += bit.bit.set();
    }
  }
  return Insertion::kAdded;
}

Removal RegionLayout::remove(uint64_t* words, const Geometry& geometry, ItemHash hash) {
  const ItemBits item(words, geometry, hash);
  if (!item.all_set()) return Removal::kAbsent;
  uint64_t cleared = 0;
  for (const ItemBits::Bit& bit : item.bits()) {
    if (!bit.flag.is_set()) cleared += bit.bit.clear();
  }
  if (cleared == 0) return Removal::kStays;
  // An array loaded from a file may have more bits set than its count of ones says, so removals
  // must not reduce the count below 0.
  uint64_t& ones = count_words(words, geometry)[kOnes];
  ones -= std::min(ones, cleared);
  return Removal::kGone;
}

}  // namespace core::bloom
