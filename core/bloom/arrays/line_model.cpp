// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/line_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/bloom/arrays/lane_sets.h"

namespace core::bloom {
namespace {

constexpr unsigned kMaxMoment = 2 * std::max(kMaxBitsPerLine, kMaxLanesPerItem);
using MomentRow = std::array<double, kMaxMoment + 1>;
using MomentTable = std::array<MomentRow, kMaxMoment + 1>;

// table[q][d]: probability that q random draws among `line_bits` bits hit exactly d different bits.
constexpr MomentTable make_distinct_table(unsigned line_bits) {
  MomentTable table{};
  table[0][0] = 1;
  for (unsigned q = 1; q <= kMaxMoment; ++q) {
    for (unsigned d = 1; d <= q; ++d) {
      const double rest = double(line_bits) - d + 1;
      table[q][d] = (table[q - 1][d] * d + table[q - 1][d - 1] * rest) / line_bits;
    }
  }
  return table;
}
constexpr MomentTable kDistinctOfWholeLines = make_distinct_table(kLineBits);

// The last table is cached, because the solver needs the same table many times.
const MomentTable& distinct_table(unsigned line_bits) {
  if (line_bits == kLineBits) return kDistinctOfWholeLines;
  thread_local unsigned last_line_bits = 0;
  thread_local MomentTable last;
  if (line_bits != last_line_bits) {
    last = make_distinct_table(line_bits);
    last_line_bits = line_bits;
  }
  return last;
}

// Moments of the fill of one line: E[fill^q] is the probability that q probes of the line all find
// a set bit.
class LineFill {
 public:
  LineFill(const LineModel& model, double item_count) : distinct_(distinct_table(model.line_bits)) {
    const unsigned most = 2 * model.bits_per_line;
    // Together the items select a certain line Binomial(throws, 1 / line_count) times. The chance
    // that i chosen bits of that line are all clear has a closed form. It is the mean of (1 -
    // i/bits)^(bits per line x selections). Repeated differences of these chances over i give the
    // chance that d chosen bits are all set.
    const double throws = item_count * model.lines_per_lookup;
    MomentRow set_chance{};
    for (unsigned i = 0; i <= most; ++i) {
      const double clear = std::pow(1.0 - double(i) / model.line_bits, int(model.bits_per_line));
      set_chance[i] = std::exp(throws * std::log1p(-(1.0 - clear) / model.line_count));
    }
    for (unsigned d = 1; d <= most; ++d) {
      for (unsigned i = most; i >= d; --i) set_chance[i] = set_chance[i - 1] - set_chance[i];
    }
    mean_ = set_chance[1];
    for (unsigned d = 0; d <= most; ++d) set_chance_[d] = set_chance[d];
  }

  double moment(unsigned q) const {
    double sum = 0;
    for (unsigned d = 1; d <= q; ++d) sum += distinct_[q][d] * set_chance_[d];
    // The moment is at least mean_^q, by Jensen's inequality. For a nearly empty line, rounding
    // errors can make the sum smaller; this bound then replaces the sum.
    return std::clamp(sum, std::pow(mean_, int(q)), 1.0);
  }

 private:
  const MomentTable& distinct_;
  double mean_ = 0;
  MomentRow set_chance_{};
};

// A term of the sum for the chance that a line of lanes has all bits of an absent item set. The
// inclusion-exclusion principle gives one term for each subset of these bits:
// coefficient * P(no added item of the line hits the subset). `hit` is the chance that one added
// item of the line hits the subset. Subsets with equal chances share a term.
struct LaneTerm {
  double hit = 0;
  double coefficient = 0;
};

std::vector<LaneTerm> make_lane_terms(unsigned lane_count) {
  const unsigned own = kLaneSets[lane_count];
  std::vector<LaneTerm> terms;
  for (unsigned subset = 0; subset <= own; ++subset) {
    if ((subset & ~own) != 0) continue;
    // The rotation that the looked-up item has does not change the result. So this item is assumed
    // to have the base set itself. An added item has each rotation with equal probability.
    std::array<unsigned, kMaxLanesPerItem + 1> rotations_by_common{};
    for (unsigned rotation = 0; rotation < kLanes; ++rotation) {
      ++rotations_by_common[std::popcount(subset & lane_set(lane_count, rotation))];
    }
    double missed = 0;
    for (unsigned common = 0; common < rotations_by_common.size(); ++common) {
      missed += rotations_by_common[common] * std::pow(1 - 1.0 / kLaneBits, int(common));
    }
    const double sign = std::popcount(subset) % 2 == 0 ? 1 : -1;
    terms.push_back({1 - missed / kLanes, sign});
  }
  std::ranges::sort(terms, {}, &LaneTerm::hit);
  size_t kept = 0;
  for (size_t i = 1; i < terms.size(); ++i) {
    if (terms[i].hit == terms[kept].hit) {
      terms[kept].coefficient += terms[i].coefficient;
    } else {
      terms[++kept] = terms[i];
    }
  }
  terms.resize(kept + 1);
  return terms;
}

const std::vector<LaneTerm>& lane_terms(unsigned lane_count) {
  static const auto kTerms = [] {
    std::array<std::vector<LaneTerm>, kMaxLanesPerItem + 1> terms;
    for (unsigned count = 1; count <= kMaxLanesPerItem; ++count) {
      terms[count] = make_lane_terms(count);
    }
    return terms;
  }();
  return kTerms[lane_count];
}

// Probability that a line of lanes has all bits of an item that was not added.
double lane_moment(const LineModel& model, double item_count) {
  const double throws = item_count * model.lines_per_lookup;
  const auto none_hit = [&](double hit) {
    return std::exp(throws * std::log1p(-hit / model.line_count));
  };
  double sum = 0;
  for (const LaneTerm& term : lane_terms(model.bits_per_line)) {
    sum += term.coefficient * none_hit(term.hit);
  }
  // As in LineFill::moment(), rounding errors may make the sum too small. The lower bound of the
  // exact value then replaces the sum.
  const double mean = 1 - none_hit(double(model.bits_per_line) / model.line_bits);
  return std::clamp(sum, std::pow(mean, int(model.bits_per_line)), 1.0);
}

// moments[s] is the probability that a line has all bits of s hashes of an item that was not added.
// Without lanes it is exact up to s = 2. With lanes it is exact up to s = 1. For s = 2, the value
// without lanes is then multiplied by the square of the factor by which lanes change the value of
// s = 1. For s > 2, the logarithm of the probability is extrapolated as a parabola. Only in the
// smallest filters do three lines of a lookup coincide often enough to matter.
using Moments = std::array<double, kMaxLinesPerLookup + 1>;
Moments same_line_moments(const LineModel& model, double item_count) {
  Moments moments{1};
  if (model.has_lanes) moments[1] = lane_moment(model, item_count);
  if (model.has_lanes && model.lines_per_lookup < 2) return moments;
  const LineFill fill(model, item_count);
  const double free_moment = fill.moment(model.bits_per_line);
  if (!model.has_lanes) moments[1] = free_moment;
  if (model.lines_per_lookup < 2) return moments;
  const double lanes_over_free = moments[1] / free_moment;
  moments[2] = std::min(moments[1],
                        fill.moment(2 * model.bits_per_line) * lanes_over_free * lanes_over_free);
  const double log1 = std::log(moments[1]);
  const double curvature = std::max(0.0, (std::log(moments[2]) - 2 * log1) / 2);
  for (unsigned s = 3; s <= model.lines_per_lookup; ++s) {
    const double continued = std::exp(s * (log1 - curvature) + double(s) * s * curvature);
    moments[s] = std::min(continued, moments[s - 1]);
  }
  return moments;
}

// Let B be any set of `bits` bits of one line. Returns the probability that a line drawn for an
// item is this line and that the item has a bit of B there.
double hit_chance(const LineModel& model, unsigned bits) {
  const double missed = std::pow(1 - double(bits) / model.line_bits, int(model.bits_per_line));
  return (1 - missed) / model.line_count;
}

double ideal_bit_count(double capacity, double error_rate) {
  return -capacity * std::log(error_rate) / (std::numbers::ln2 * std::numbers::ln2);
}

// Returns the minimum whole number of lines with which the error rate is at most `error_rate`.
// Returns nullopt if that needs more than `line_limit` lines.
std::optional<double> solve_line_count(LineModel model, double capacity, double error_rate,
                                       double line_limit) {
  const auto excess = [&](double line_count) {
    model.line_count = line_count;
    return std::log(model.error_rate(capacity) / error_rate);
  };
  double high = line_limit;
  double high_excess = excess(high);
  if (!(high_excess <= 0)) return std::nullopt;
  double low = 1;
  double low_excess = excess(low);
  if (low_excess <= 0) return low;
  // Searches for the number of lines by the Illinois variant of the false position method. It needs
  // few steps, because the logarithm of the error rate is nearly linear in that number.
  const double tolerance = 1e-9;
  for (int step = 0; step < 100 && high - low > std::max(0.5, high * tolerance); ++step) {
    double middle = high - high_excess * (high - low) / (high_excess - low_excess);
    if (!(middle > low && middle < high) || step % 8 == 7) middle = (low + high) / 2;
    const double middle_excess = excess(middle);
    if (middle_excess <= 0) {
      high = middle;
      high_excess = middle_excess;
      low_excess /= 2;
    } else {
      low = middle;
      low_excess = middle_excess;
      high_excess /= 2;
    }
  }
  double whole = std::min(std::ceil(high), line_limit);
  while (whole > 1 && whole - 1 > low && excess(whole - 1) <= 0) --whole;
  return whole;
}

}  // namespace

double LineModel::error_rate(double item_count) const {
  if (item_count <= 0) return 0;
  const unsigned g = lines_per_lookup;
  const Moments moments = same_line_moments(*this, item_count);
  // The g lines of a lookup are g balls thrown into line_count urns. An urn hit s times contributes
  // moments[s], and the fills of different lines are negatively associated. So the error is at most
  // g! [z^g] (sum_s moments[s] (z/line_count)^s / s!)^line_count. Euler's recurrence raises the
  // power series to line_count.
  Moments base{1};
  double factor = 1;
  for (unsigned s = 1; s <= g; ++s) {
    factor /= s * line_count;
    base[s] = moments[s] * factor;
  }
  Moments power{1};
  double factorial = 1;
  for (unsigned m = 1; m <= g; ++m) {
    double sum = 0;
    for (unsigned i = 1; i <= m; ++i) sum += (i * (line_count + 1) - m) * base[i] * power[m - i];
    power[m] = sum / m;
    factorial *= m;
  }
  return std::clamp(power[g] * factorial, 0.0, 1.0);
}

double LineModel::expected_ones(double item_count) const {
  const double clear =
      std::expm1(item_count * lines_per_lookup * std::log1p(-hit_chance(*this, 1)));
  return -line_count * line_bits * clear;
}

double LineModel::items_of_ones(double ones) const {
  const double bits = line_count * line_bits;
  const double share = std::min(ones, bits - 1) / bits;
  return std::log1p(-share) / (lines_per_lookup * std::log1p(-hit_chance(*this, 1)));
}

// Sums the covariances of all pairs of bits. Two bits of one line, or of two lines, are slightly
// correlated. The correlation is computed by expm1() from logarithms, which avoids the cancellation
// of a plain difference.
double LineModel::variance_of_ones(double item_count) const {
  const double throws = item_count * lines_per_lookup;
  const double bits = line_count * line_bits;
  const double hit = hit_chance(*this, 1);
  const double odds = hit / (1 - hit);
  const double clear = std::exp(throws * std::log1p(-hit));
  const double log_ratio = std::log1p(-hit_chance(*this, 2)) - 2 * std::log1p(-hit);
  const double same_line = std::expm1(throws * log_ratio);
  const double other_line = line_count > 1 ? std::expm1(throws * std::log1p(-odds * odds)) : 0;
  const double pairs = (line_bits - 1.0) * same_line + (bits - line_bits) * other_line;
  return std::max(0.0, bits * clear * (1 - clear + clear * pairs));
}

std::optional<LineModel> solve_line_model(uint64_t capacity, double error_rate,
                                          const LineShapes& shapes) {
  const double items = double(capacity);
  const double ideal_lines = ideal_bit_count(items, error_rate) / shapes.line_bits;
  const double slack_limit = std::ceil(ideal_lines * (1 + shapes.memory_slack));
  const double ideal_bits_per_item = -std::log2(error_rate);
  std::optional<LineModel> best;
  // The first pass accepts only shapes that take at most memory_slack more memory than a classic
  // Bloom filter. If a filter needs only a few lines, rounding up may put every shape above this
  // bound. The second pass then selects the smallest shape.
  for (const double limit : {slack_limit, std::ceil(2 * ideal_lines) + 2}) {
    for (unsigned g = 1; g <= kMaxLinesPerLookup; ++g) {
      const int ideal = int(ideal_bits_per_item / g);
      const int most = std::min<int>(ideal + 2, int(shapes.bits_per_line_max));
      for (int bits = std::clamp<int>(ideal - 1, 1, most); bits <= most; ++bits) {
        LineModel model{1, g, unsigned(bits), shapes.line_bits, shapes.has_lanes};
        const auto lines = solve_line_count(model, items, error_rate, limit);
        if (!lines || (best && *lines >= best->line_count)) continue;
        model.line_count = *lines;
        best = model;
      }
      if (best && limit == slack_limit) return best;
    }
    if (best) return best;
  }
  return best;
}

}  // namespace core::bloom
