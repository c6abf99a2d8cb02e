// SPDX-License-Identifier: MIT
//
// Measures the curves of docs/bloom_math.md and prints them as comma-separated values, which
// bench/curves.py draws. The curves show the error by load, nanoseconds per lookup by size, and
// memory by error rate. A further curve shows the share of items that cannot be deleted (residue)
// by load.
//
// Usage: curves_bench [--quick] [figure...]
// The figures are error, lookup, residue and memory (default: all).
// Every line is: figure, series, x, y.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/bench_filters.h"
#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"

namespace {

using namespace bench;
using namespace core::bloom;

constexpr double kErrorRate = 0.01;

using Series = NamedParameters;

void print_point(std::string_view figure, const Series& series, double x, double y) {
  fmt::print("{},{},{:.6g},{:.6g}\n", figure, series.name, x, y);
  std::fflush(stdout);
}

// Returns one series for each layout. A layout with regions gets kDefaultRegionBits per region.
std::vector<Series> all_series() {
  std::vector<Series> all;
  for (const LayoutRow& row : layout_rows()) {
    FilterParameters parameters;
    parameters.layout = row.id;
    if (row.takes_region_bits) parameters.region_bits = kDefaultRegionBits;
    all.push_back({std::string(row.name), parameters});
  }
  return all;
}

std::vector<Series> region_series() {
  static constexpr std::array kWidths = {1, 4, 10};
  return deletable_layouts(kWidths, "{} r = {}");
}

double measured_error(const ScalableFilter& filter, uint64_t probes) {
  const ItemHasher hash = filter.hasher();
  uint64_t found = 0;
  for (uint64_t i = 0; i < probes; ++i) found += filter.may_contain(item_hash(hash, 2, i));
  return static_cast<double>(found) / static_cast<double>(probes);
}

// Measures the error rate by load, which is the number of added items divided by the capacity. A
// filter gets up to 16 times as many items as its capacity.
void measure_error(uint64_t capacity, uint64_t probes) {
  for (const Series& series : all_series()) {
    const FilterPtr filter = make_filter(series.parameters, kErrorRate, capacity, 2);
    const ItemHasher hash = filter->hasher();
    uint64_t added = 0;
    for (const double load : {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0}) {
      const auto wanted = static_cast<uint64_t>(load * static_cast<double>(capacity));
      for (; added < wanted; ++added) filter->add(item_hash(hash, 1, added), kBudget);
      print_point("error", series, load, measured_error(*filter, probes) * 100);
    }
  }
}

// Measures several rounds of lookups and returns the time of the fastest round, because other
// processes can only make a round slower.
double batch_ns(const ScalableFilter& filter, uint64_t lookups) {
  const ItemHasher hash = filter.hasher();
  std::array<ItemHash, kBatchItems> hashes;
  std::array<bool, kBatchItems> found;
  double best = std::numeric_limits<double>::max();
  for (uint64_t round = 0; round < 5; ++round) {
    const double start = cpu_ns();
    for (uint64_t i = 0; i < lookups; i += kBatchItems) {
      for (uint64_t j = 0; j < kBatchItems; ++j) hashes[j] = item_hash(hash, 3 + round, i + j);
      filter.may_contain_many(hashes, found);
    }
    best = std::min(best, (cpu_ns() - start) / static_cast<double>(lookups));
  }
  return best;
}

// Measures lookups of an absent item in a full filter, in batches.
void measure_lookups(const std::vector<uint64_t>& sizes, uint64_t lookups) {
  for (const Series& series : all_series()) {
    for (const uint64_t size : sizes) {
      const FilterPtr filter = make_filter(series.parameters, kErrorRate, size, 0);
      const ItemHasher hash = filter->hasher();
      for (uint64_t i = 0; i < size; ++i) filter->add(item_hash(hash, 1, i), kBudget);
      print_point("lookup", series, static_cast<double>(size), batch_ns(*filter, lookups));
    }
  }
}

// Prints which percentage of the added items cannot be deleted. The x axis is the number of added
// items, in percent of the capacity.
void measure_residue(uint64_t capacity) {
  for (const Series& series : region_series()) {
    for (int percent = 10; percent <= 100; percent += 10) {
      const FilterPtr filter = make_filter(series.parameters, kErrorRate, capacity, 0);
      const ItemHasher hash = filter->hasher();
      std::vector<uint64_t> added;
      const uint64_t wanted = capacity * static_cast<uint64_t>(percent) / 100;
      // The loop has a limit, because a table of fingerprints may be full before it has all items.
      for (uint64_t i = 0; added.size() < wanted && i < 2 * capacity; ++i) {
        if (filter->add(item_hash(hash, 1, i), kBudget) == AddOutcome::kAdded) added.push_back(i);
      }
      uint64_t stayed = 0;
      for (const uint64_t item : added) {
        stayed += filter->remove(item_hash(hash, 1, item)) == Removal::kStays;
      }
      const double share = static_cast<double>(stayed) / static_cast<double>(added.size());
      print_point("residue", series, percent, share * 100);
    }
  }
}

// Prints the bits per item of a filter that has as many items as its capacity. For a filter with a
// window, counts the arrays of all its generations.
void measure_memory(uint64_t capacity) {
  std::vector<Series> all = all_series();
  FilterParameters window;
  window.window.length = 86'400'000;
  window.window.unit = WindowUnit::kMilliseconds;
  window.window.generations = 4;
  all.push_back({"window g = 4", window});
  for (const Series& series : all) {
    for (int halvings = 0; halvings < 17; ++halvings) {
      const double rate = std::ldexp(0.1, -halvings);
      FilterParameters parameters = series.parameters;
      parameters.error_rate = rate;
      parameters.capacity = capacity;
      parameters.expansion = 2;
      const auto plan = ScalableFilter::plan(parameters);
      if (!plan) continue;
      const uint32_t arrays = parameters.window.is_set() ? parameters.window.generations + 1U : 1U;
      const double bits = static_cast<double>(plan->geometry.bit_count) * arrays;
      print_point("memory", series, rate, bits / static_cast<double>(capacity));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> words(argv + 1, argv + argc);
  const bool is_quick = std::erase(words, "--quick") > 0;
  const auto is_wanted = [&](std::string_view figure) {
    return words.empty() || std::ranges::find(words, figure) != words.end();
  };
  fmt::print("figure,series,x,y\n");
  if (is_wanted("memory")) measure_memory(is_quick ? 100'000 : 1'000'000);
  if (is_wanted("residue")) measure_residue(is_quick ? 20'000 : 1'000'000);
  if (is_wanted("error")) {
    measure_error(is_quick ? 5'000 : 100'000, is_quick ? 200'000 : 2'000'000);
  }
  if (!is_wanted("lookup")) return EXIT_SUCCESS;
  std::vector<uint64_t> sizes;
  for (uint64_t size = 1000; size <= (is_quick ? 100'000U : 30'000'000U); size *= 10) {
    sizes.push_back(size);
    if (size * 3 <= (is_quick ? 100'000U : 30'000'000U)) sizes.push_back(size * 3);
  }
  measure_lookups(sizes, is_quick ? 100'000 : 2'000'000);
  return EXIT_SUCCESS;
}
