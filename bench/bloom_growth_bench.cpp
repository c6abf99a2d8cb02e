// SPDX-License-Identifier: MIT
//
// Prints what the series of layer errors costs as a filter grows: bits per item, measured error and
// nanoseconds per lookup after some layers.
//
// Usage: bloom_growth_bench
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/bloom/scalable_filter.h"

namespace {

using namespace core::bloom;

// Items are numbers as 16 bytes; kind keeps present and absent ones apart.
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
  const auto start = std::chrono::steady_clock::now();
  function();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / double(items);
}

// Fills a filter layer by layer and prints its cost after some of them.
void print_growth(double tightening_ratio, LayoutId layout, std::string_view name) {
  FilterParameters parameters;
  parameters.capacity = 1000;
  parameters.tightening_ratio = tightening_ratio;
  parameters.layout = layout;
  const core::UnlimitedMemory budget;
  const auto filter = std::move(ScalableFilter::create(parameters, budget).value());
  uint64_t added = 0;
  for (const size_t layers : {1, 3, 8, 14}) {
    const uint64_t capacity = ((uint64_t{1} << layers) - 1) * parameters.capacity;
    for (; filter->item_count() < capacity; ++added) filter->add(Item(1, added).view(), budget);
    uint64_t bits = 0;
    for (size_t i = 0; i < filter->layer_count(); ++i) bits += filter->layer_bytes(i).size() * 8;
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

}  // namespace

int main() {
  fmt::print("Growth from 1000 items at 1 %, every layer full\n");
  fmt::print("{:<18} {:>6} {:>9} {:>8} {:>9} {:>9} {:>8}\n", "series", "layers", "items", "bits/it",
             "measured", "present", "absent");
  print_growth(0, LayoutId::kNative, "native");
  print_growth(0.5, LayoutId::kNative, "geometric 0.5");
  print_growth(0.8, LayoutId::kNative, "geometric 0.8");
  print_growth(0.9, LayoutId::kNative, "geometric 0.9");
  print_growth(0, LayoutId::kRedisBloom, "redisbloom");
  return 0;
}
