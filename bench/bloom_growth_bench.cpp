// SPDX-License-Identifier: MIT
//
// Prints how the cost of a filter grows with its number of layers: bits per item, measured error
// rate and nanoseconds per lookup. Does so for several ways to choose the error rates of the
// layers. Then measures batched lookups of absent items in two filters: one grew to a million
// items, the other was created with that capacity.
//
// Usage: bloom_growth_bench
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/bench_filters.h"
#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"

namespace {

using namespace core::bloom;

// An item of 16 bytes, made from `kind` and `number`. Items of different kinds are never equal:
// absent items have another kind than the added items.
struct Item {
  std::array<char, 16> bytes;
  Item(uint64_t kind, uint64_t number) {
    number = number * 0x9E3779B97F4A7C15 + kind;
    std::memcpy(bytes.data(), &number, 8);
    std::memcpy(bytes.data() + 8, &kind, 8);
  }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

template <class Function>
double nanoseconds_per_item(uint64_t items, Function&& function) {
  const double start = bench::cpu_ns();
  function();
  return (bench::cpu_ns() - start) / double(items);
}

// Fills a filter layer by layer and prints the filter's cost after some of the layers.
void print_growth(double tightening_ratio, LayoutId layout, std::string_view name) {
  FilterParameters parameters;
  parameters.capacity = 1000;
  parameters.tightening_ratio = tightening_ratio;
  parameters.layout = layout;
  const core::UnlimitedMemory budget;
  const auto filter = ScalableFilter::create(parameters, budget).value();
  uint64_t added = 0;
  for (const size_t layers : {1, 3, 8, 14}) {
    const uint64_t capacity = ((uint64_t{1} << layers) - 1) * parameters.capacity;
    for (; filter->item_count() < capacity; ++added) filter->add(Item(1, added).view(), budget);
    uint64_t bits = 0;
    for (size_t i = 0; i < filter->layer_count(); ++i)
      bits += filter->layer_bits(i).bytes().size() * 8;
    const uint64_t probes = 500'000;
    uint64_t found = 0, wrong = 0;
    const double present_ns = nanoseconds_per_item(probes, [&] {
      for (uint64_t i = 0; i < probes; ++i) found += filter->may_contain(Item(1, i % added).view());
    });
    const double absent_ns = nanoseconds_per_item(probes, [&] {
      for (uint64_t i = 0; i < probes; ++i) wrong += filter->may_contain(Item(2, i).view());
    });
    fmt::print("{:<18} {:>6} {:>9} {:>8.2f} {:>9.2e} {:>9.1f} {:>8.1f}{}\n", name, layers, capacity,
               double(bits) / double(capacity), double(wrong) / double(probes), present_ns,
               absent_ns, found == probes ? "" : "  FALSE NEGATIVES");
  }
}

// A filter that has grown to kItems items, and the measured cost of each round of lookups of absent
// items.
struct Grown {
  static constexpr uint64_t kItems = 1'000'000;
  static constexpr size_t kBatchItems = 100;
  static constexpr uint64_t kBatchesPerTurn = 5'000;

  explicit Grown(uint64_t capacity) {
    filter = bench::make_filter(bench::native_parameters(capacity, 0.01));
    const core::UnlimitedMemory budget;
    for (uint64_t i = 0; filter->item_count() < kItems; ++i) filter->add(Item(1, i).view(), budget);
  }

  void look_up_absent(uint64_t turn) {
    const ItemHasher hash = filter->hasher();
    std::array<ItemHash, kBatchItems> hashes;
    std::array<bool, kBatchItems> found;
    turns_ns.push_back(nanoseconds_per_item(kBatchesPerTurn * kBatchItems, [&] {
      for (uint64_t batch = 0; batch < kBatchesPerTurn; ++batch) {
        const uint64_t first = (turn * kBatchesPerTurn + batch) * kBatchItems;
        for (size_t i = 0; i < kBatchItems; ++i) hashes[i] = hash(Item(2, first + i).view());
        filter->may_contain_many(hashes, found);
        wrong += static_cast<uint64_t>(std::ranges::count(found, true));
      }
    }));
  }

  std::unique_ptr<ScalableFilter> filter;
  std::vector<double> turns_ns;
  uint64_t wrong = 0;
};

void print_batches() {
  fmt::print("\n{} items at 1 %, absent items in batches of {}, ns per item\n", Grown::kItems,
             Grown::kBatchItems);
  std::vector<Grown> filters;
  for (const uint64_t capacity : {1'000'000, 1000, 100}) filters.emplace_back(capacity);
  constexpr uint64_t kTurns = 25;
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    for (Grown& grown : filters) grown.look_up_absent(turn);
  }
  double right_ns = 0;
  for (Grown& grown : filters) {
    std::ranges::nth_element(grown.turns_ns, grown.turns_ns.begin() + kTurns / 2);
    const double median_ns = grown.turns_ns[kTurns / 2];
    if (right_ns == 0) right_ns = median_ns;
    const double probes = double(kTurns * Grown::kBatchesPerTurn * Grown::kBatchItems);
    fmt::print("from {:>9} layers {:>2} {:>6.1f} ns ({:.2f}x)  measured {:.2e}\n",
               grown.filter->parameters().capacity, grown.filter->layer_count(), median_ns,
               median_ns / right_ns, double(grown.wrong) / probes);
  }
}

}  // namespace

int main() {
  fmt::print("Growth from 1000 items at 1 %, every layer full\n");
  fmt::print("{:<18} {:>6} {:>9} {:>8} {:>9} {:>9} {:>8}\n", "series", "layers", "items", "bits/it",
             "measured", "present", "absent");
  for (const LayoutRow& layout : kLayoutRows) print_growth(0, layout.id, layout.name);
  print_growth(0.5, LaneLayout::kId, "geometric 0.5");
  print_growth(0.8, LaneLayout::kId, "geometric 0.8");
  print_growth(0.9, LaneLayout::kId, "geometric 0.9");
  print_batches();
  return 0;
}
