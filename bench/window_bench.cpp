// SPDX-License-Identifier: MIT
//
// Compares windowed filters with a plain native filter of the same capacity and error rate. Prints
// bits and nanoseconds per item, hashing included, once a window has passed and all generations
// hold items. Prints the measured error and the cost of a rotation.
//
// Usage: window_bench [--quick]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/bench_filters.h"
#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"

namespace {

using namespace bench;
using namespace core::bloom;

constexpr int64_t kWindowMs = 600'000;
constexpr double kErrorRate = 0.01;

FilterPtr make(uint8_t generations, uint64_t capacity) {
  FilterParameters parameters = native_parameters(capacity, kErrorRate);
  if (generations != 0) {
    parameters.window = {.length = kWindowMs,
                         .unit = WindowUnit::kMilliseconds,
                         .generations = generations,
                         .refreshes = false};
  } else {
    // The filter does not grow, so its only layer may use the whole error rate.
    parameters.expansion = 0;
  }
  return make_filter(parameters);
}

struct Figures {
  double bits_per_item = 0;
  double error = 0;
  double add_ns = 0;
  double turn_us = 0;
  double present_ns = 0;
  double present_batch_ns = 0;
  double absent_ns = 0;
  double absent_batch_ns = 0;
};

// Looks the items up one by one, then again in batches. Measures the CPU time per item of single
// and of batched lookups. Returns the number of items found.
uint64_t look(const ScalableFilter& filter, uint64_t kind, uint64_t first, uint64_t count,
              int64_t now_ms, double& single_ns, double& batch_ns) {
  const ItemHasher hash = filter.hasher();
  std::array<ItemHash, kBatchItems> hashes;
  std::array<bool, kBatchItems> answers;
  uint64_t found = 0;
  const double start = cpu_ns();
  for (uint64_t i = 0; i < count; ++i) {
    found += filter.may_contain(item_hash(hash, kind, first + i), now_ms);
  }
  const double middle = cpu_ns();
  uint64_t batched = 0;
  for (; batched + kBatchItems <= count; batched += kBatchItems) {
    for (size_t j = 0; j < kBatchItems; ++j) hashes[j] = item_hash(hash, kind, first + batched + j);
    filter.may_contain_many(std::span<const ItemHash>(hashes), answers, now_ms);
  }
  batch_ns = (cpu_ns() - middle) / double(batched);
  single_ns = (middle - start) / double(count);
  return found;
}

Figures measure(uint8_t generations, uint64_t count) {
  const FilterPtr filter = make(generations, count);
  const ItemHasher hash = filter->hasher();
  Figures figures;
  int64_t now_ms = 0;
  uint64_t added = 0;
  // was_new[i] is true if the add of item i reported the item as new. All items are different, so
  // an item that is not reported as new is a false positive.
  std::vector<bool> was_new;
  uint64_t turns = 0;
  double turn_ns = 0;
  // Adds twice as many items as the window holds, so that the oldest generations expire. A plain
  // filter gets as many items as a window holds.
  const uint64_t pieces = generations == 0 ? 1 : 2 * uint64_t{generations};
  const uint64_t piece = generations == 0 ? count : count / generations;
  for (uint64_t i = 0; i < pieces; ++i) {
    if (i != 0) {
      now_ms = filter->window()->next_start();
      const double start = cpu_ns();
      if (const auto due = filter->window()->rotation_due(now_ms); due)
        filter->rotate(*due, kBudget);
      turn_ns += cpu_ns() - start;
      ++turns;
      filter->take_dropped();
    }
    const double start = cpu_ns();
    for (uint64_t j = 0; j < piece; ++j) {
      was_new.push_back(filter->add(item_hash(hash, 1, added++), kBudget) == AddOutcome::kAdded);
    }
    figures.add_ns += (cpu_ns() - start) / double(pieces * piece);
  }
  uint64_t array_bytes = 0;
  for (size_t i = 0; i < filter->layer_count(); ++i) {
    array_bytes += filter->layer_bits(i).size_bytes();
  }
  figures.bits_per_item = double(array_bytes) * 8 / double(count);
  figures.turn_us = turns == 0 ? 0 : turn_ns / double(turns) / 1000;
  const uint64_t held = piece * std::max<uint64_t>(1, generations);
  look(*filter, 1, added - held, held, now_ms, figures.present_ns, figures.present_batch_ns);
  for (uint64_t i = added - held; i < added; ++i) {
    if (!was_new[i] || filter->may_contain(item_hash(hash, 1, i), now_ms)) continue;
    fmt::print(stderr, "an item of the window is lost\n");
    std::exit(EXIT_FAILURE);
  }
  const uint64_t found =
      look(*filter, 2, 0, count, now_ms, figures.absent_ns, figures.absent_batch_ns);
  figures.error = double(found) / double(count);
  return figures;
}

void print_size(uint64_t count) {
  fmt::print(
      "\n{} items a window at {}; CPU ns per item, lookups singly and in batches of {}, each with "
      "times the plain filter's\n{:<8} {:>9} {:>7} {:>9} {:>8} | {:^14} {:^14} | {:^14} {:^14}\n",
      count, kErrorRate, kBatchItems, "", "bits/item", "error", "turn us", "add", "present",
      "batch", "absent", "batch");
  Figures plain;
  for (const uint8_t generations : {0, 1, 4, 16, 64}) {
    const Figures figures = measure(generations, count);
    if (generations == 0) plain = figures;
    const auto with_ratio = [](double ns, double base_ns) {
      return fmt::format("{:6.1f} {:6.2f}x", ns, ns / base_ns);
    };
    fmt::print("{:<8} {:9.2f} {:6.3f}% {:9.1f} {:8.1f} | {} {} | {} {}\n",
               generations == 0 ? "plain" : fmt::format("g = {}", generations),
               figures.bits_per_item, figures.error * 100, figures.turn_us, figures.add_ns,
               with_ratio(figures.present_ns, plain.present_ns),
               with_ratio(figures.present_batch_ns, plain.present_batch_ns),
               with_ratio(figures.absent_ns, plain.absent_ns),
               with_ratio(figures.absent_batch_ns, plain.absent_batch_ns));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  print_size(100'000);
  print_size(is_quick ? 1'000'000 : 10'000'000);
  return EXIT_SUCCESS;
}
