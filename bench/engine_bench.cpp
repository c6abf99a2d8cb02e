// SPDX-License-Identifier: MIT
//
// Compares native filters that do not grow with the filters of Boost.Bloom, the fastest library of
// its kind. Measures the CPU nanoseconds per item, hashing included, of adds and lookups in batches
// of 128 and of single lookups. The filters are measured alternately in one process, and each
// printed time is the median of several measurements. An array of at least 32 MiB is in huge pages,
// if the kernel has them, as in the server (core/bloom/arrays/huge_pages.h).
//
// Boost.Bloom is in no Debian 12 package. It is measured if CMake's option
// BLOOMERY_BOOST_BLOOM_INCLUDE names the folder of its headers. Two rows are printed for it. The
// first has the best times of its configurations that need at most 1.03 times the memory of the
// native filter. The second allows 1.09 times this memory.
//
// First prints the memory of filters that have grown, divided by the memory of such filters in
// RedisBloom. This memory is computed, not measured: each layer of RedisBloom has the number of
// bits that is optimal for a classic filter.
//
// Usage: engine_bench [--quick] [--items N] [--figures FILE] [error_rate...]
// FILE gets the ratios as JSON, for bench/goals.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/bench_filters.h"
#include "bench/engine/contestant.h"
#include "core/bloom/arrays/huge_pages.h"

namespace {

using namespace bench;
using namespace core::bloom;

constexpr uint64_t kPresent = 1;
constexpr uint64_t kAbsent = 2;
// Maximum number of items per measurement; a multiple of the batch size.
constexpr uint64_t kTurnItems = 1024 * kEngineBatchItems;
constexpr uint64_t kLookupTurns = 15;
// A small filter is cleared and filled again until about this number of adds has been measured.
constexpr uint64_t kAddsMin = 4'000'000;

class Native final : public Contestant {
 public:
  Native(uint64_t items, double error_rate)
      : filter_(make_filter(native_parameters(items, error_rate, 0))), hash_(filter_->hasher()) {
    touch_pages();
  }
  double bits_per_item() const {
    const LayerInfo info = filter_->layer_info(0);
    return double(info.geometry.bit_count) / double(info.capacity);
  }

  void clear() override {
    filter_ = create_empty_like(*filter_);
    touch_pages();
  }
  void add(std::span<const Item> items) override {
    std::array<AddOutcome, kEngineBatchItems> outcomes;
    for (size_t i = 0; i < items.size(); i += kEngineBatchItems) {
      filter_->add_many(hashes_of(items.subspan(i)), outcomes, kBudget);
    }
  }
  uint64_t find(std::span<const Item> items) const override {
    std::array<bool, kEngineBatchItems> answers;
    uint64_t found = 0;
    for (size_t i = 0; i < items.size(); i += kEngineBatchItems) {
      filter_->may_contain_many(hashes_of(items.subspan(i)), answers);
      for (const bool answer : answers) found += answer;
    }
    return found;
  }
  uint64_t find_singly(std::span<const Item> items) const override {
    uint64_t found = 0;
    for (const Item& item : items) found += filter_->may_contain(hash_(view(item)));
    return found;
  }

 private:
  static std::string_view view(const Item& item) { return {item.data(), item.size()}; }
  std::span<const ItemHash> hashes_of(std::span<const Item> items) const {
    // The arrays are static, because the constructors of local arrays would clear them for each
    // batch.
    static std::array<std::string_view, kEngineBatchItems> views;
    static std::array<ItemHash, kEngineBatchItems> hashes;
    for (size_t i = 0; i < views.size(); ++i) views[i] = view(items[i]);
    hash_(views, hashes);
    return hashes;
  }
  // Touches all pages, as in a filter that has been in use. Boost's constructor touches the pages
  // of its array, too, because it clears the array. Then moves a big array into huge pages, as the
  // server does with an array in use.
  void touch_pages() {
    const std::span<std::byte> bytes = filter_->mutable_layer_bits(0).bytes();
    for (size_t i = 0; i < bytes.size(); i += 4096) static_cast<volatile std::byte&>(bytes[i]) = {};
    HugePages& pages = HugePages::of_process();
    using Step = HugePages::Step;
    for (Step step = pages.step(); step == Step::kCollapsed || step == Step::kContinues;) {
      step = pages.step();
    }
  }

  FilterPtr filter_;
  ItemHasher hash_;
};

std::vector<Item> make_items(uint64_t kind, uint64_t first, uint64_t step, uint64_t count) {
  std::vector<Item> items(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t spread = (first + i * step) * 0x9E3779B97F4A7C15 + kind;
    std::memcpy(items[i].data(), &spread, 8);
    std::memcpy(items[i].data() + 8, &kind, 8);
  }
  return items;
}

enum Work : size_t { kAdd, kFound, kMissed, kFoundSingly, kMissedSingly, kWorks };

struct Entrant {
  Candidate candidate;
  std::array<std::vector<double>, kWorks> turns_ns{};
  uint64_t wrong = 0;
  uint64_t lost = 0;

  void take_turn(Work work, std::span<const Item> items) {
    Contestant& filter = *candidate.filter;
    uint64_t found = 0;
    const double start = cpu_ns();
    if (work == kAdd) filter.add(items);
    if (work == kFound || work == kMissed) found = filter.find(items);
    if (work == kFoundSingly || work == kMissedSingly) found = filter.find_singly(items);
    turns_ns[work].push_back((cpu_ns() - start) / double(items.size()));
    if (work == kFound || work == kFoundSingly) lost += items.size() - found;
    if (work == kMissed || work == kMissedSingly) wrong += found;
  }
  double median_ns(Work work) {
    std::vector<double>& turns = turns_ns[work];
    const auto middle = turns.begin() + static_cast<ptrdiff_t>(turns.size() / 2);
    std::ranges::nth_element(turns, middle);
    return *middle;
  }
};

void fill(std::vector<Entrant>& entrants, uint64_t items) {
  const uint64_t rounds = std::max<uint64_t>(1, kAddsMin / items);
  for (uint64_t round = 0; round < rounds; ++round) {
    if (round != 0) {
      for (Entrant& entrant : entrants) entrant.candidate.filter->clear();
    }
    for (uint64_t start = 0; start < items; start += kTurnItems) {
      const auto turn = make_items(kPresent, start, 1, std::min(kTurnItems, items - start));
      for (Entrant& entrant : entrants) entrant.take_turn(kAdd, turn);
    }
  }
}

// Ratios by their name, such as "engine/1.03/100000/0.01/add".
std::vector<std::pair<std::string, double>> figures;

// Returns the lowest median time of each kind of work, among the filters with at most `most_bits`
// bits per item. Returns 0 for each kind if there is no such filter.
std::array<double, kWorks> best_times(std::span<Entrant> entrants, double most_bits) {
  std::array<double, kWorks> best{};
  for (Entrant& entrant : entrants) {
    if (entrant.candidate.bits_per_item > most_bits) continue;
    for (size_t work = 0; work < kWorks; ++work) {
      const double ns = entrant.median_ns(Work(work));
      if (best[work] == 0 || ns < best[work]) best[work] = ns;
    }
  }
  return best;
}

void print_row(std::string_view name, std::span<Entrant> entrants, double ours_bits, double most) {
  fmt::print("  {:<22}", name);
  for (const double ns : best_times(entrants, ours_bits * most)) fmt::print(" {:>8.1f}", ns);
}

void print_best(std::span<Entrant> entrants, double ours_bits, double most) {
  Entrant* best = nullptr;
  for (Entrant& entrant : entrants) {
    if (entrant.candidate.bits_per_item > ours_bits * most) continue;
    if (best == nullptr || entrant.median_ns(kFound) < best->median_ns(kFound)) best = &entrant;
  }
  if (best == nullptr) return;
  print_row(fmt::format("Boost, memory {:.2f}", most), entrants, ours_bits, most);
  fmt::print("  best found: {} {:.2f}\n", best->candidate.name, best->candidate.bits_per_item);
}

// Appends a figure for each kind of work: our time divided by the best time of `others`. Filters
// that take more than `most` times our memory are not considered.
void add_figures(uint64_t items, double error_rate, std::span<Entrant> ours,
                 std::span<Entrant> others, double most) {
  constexpr std::array kNames{"add", "found", "absent", "found_singly", "absent_singly"};
  const double bits = ours.front().candidate.bits_per_item;
  const auto our_times = best_times(ours, bits);
  const auto best = best_times(others, bits * most);
  for (size_t work = 0; work < kWorks; ++work) {
    if (best[work] == 0) continue;
    figures.emplace_back(
        fmt::format("engine/{:.2f}/{}/{}/{}", most, items, error_rate, kNames[work]),
        our_times[work] / best[work]);
  }
}

void compare_growth(double error_rate) {
  constexpr uint64_t kCapacity = 100'000;
  const FilterParameters parameters = native_parameters(kCapacity, error_rate);
  auto plan = plan_first_layer(parameters);
  double bits = 0, classic_bits = 0, items = 0;
  fmt::print("{:<8.0e}", error_rate);
  for (uint32_t layers = 1; plan && layers <= 14; ++layers) {
    bits += double(plan->geometry.bit_count);
    items += double(plan->capacity);
    const double classic_rate = error_rate * std::exp2(-double(layers));
    classic_bits -= double(plan->capacity) * std::log2(classic_rate) / std::log(2.0);
    figures.emplace_back(fmt::format("growth/{}/{}/memory", layers, error_rate),
                         bits / classic_bits);
    if (layers <= 5 || layers == 10 || layers == 14) {
      fmt::print(" {:>6.2f} {:.3f}", bits / items, bits / classic_bits);
    }
    plan = plan_next_layer(parameters, layers, *plan);
  }
  fmt::print("\n");
}

bool write_figures(const std::string& path) {
  std::ofstream file(path);
  file << "{";
  for (size_t i = 0; i < figures.size(); ++i) {
    file << fmt::format("{}\n \"{}\": {}", i == 0 ? "" : ",", figures[i].first, figures[i].second);
  }
  file << "\n}\n";
  return bool(file.flush());
}

void compare(uint64_t items, double error_rate) {
  constexpr double kMemoryMost = 1.09;
  auto native = std::make_unique<Native>(items, error_rate);
  const double bits = native->bits_per_item();
  std::vector<Entrant> entrants;
  entrants.push_back({Candidate{"native", bits, std::move(native)}});
  for (Candidate& candidate : boost_filters(items, error_rate, bits * kMemoryMost)) {
    entrants.push_back({std::move(candidate)});
  }
  fill(entrants, items);
  const uint64_t count = std::min(kTurnItems, items);
  for (uint64_t turn = 0; turn < kLookupTurns; ++turn) {
    const auto present = make_items(kPresent, turn % (items / count), items / count, count);
    const auto absent = make_items(kAbsent, turn * count, 1, count);
    for (Entrant& entrant : entrants) {
      entrant.take_turn(kFound, present);
      entrant.take_turn(kMissed, absent);
      entrant.take_turn(kFoundSingly, present);
      entrant.take_turn(kMissedSingly, absent);
    }
  }
  const std::span all(entrants);
  const Entrant& ours = entrants.front();
  fmt::print(
      "{} items, error {:.0e}, measured {:.1e}, {:.2f} bits per item, {} MiB in huge pages{}\n",
      items, error_rate, double(ours.wrong) / double(2 * kLookupTurns * count), bits,
      huge_array_bytes() >> 20, ours.lost == 0 ? "" : ", ITEMS LOST");
  print_row("native", all.first(1), bits, 1);
  fmt::print("\n");
  for (const double most : {1.03, kMemoryMost}) {
    print_best(all.subspan(1), bits, most);
    add_figures(items, error_rate, all.first(1), all.subspan(1), most);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<uint64_t> sizes{100'000, 10'000'000, 100'000'000};
  std::vector<double> error_rates;
  std::string figures_path;
  bool is_valid = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      sizes.pop_back();
    } else if (argument == "--items" && i + 1 < argc) {
      sizes = {std::strtoull(argv[++i], nullptr, 10)};
    } else if (argument == "--figures" && i + 1 < argc) {
      figures_path = argv[++i];
    } else {
      error_rates.push_back(std::strtod(argv[i], nullptr));
      is_valid &= error_rates.back() > 0 && error_rates.back() < 1;
    }
  }
  for (uint64_t& items : sizes) {
    items = items / kEngineBatchItems * kEngineBatchItems;
    is_valid &= items > 0 && items <= 10'000'000'000;
  }
  if (!is_valid) {
    fmt::print(stderr,
               "usage: engine_bench [--quick] [--items N] [--figures FILE] [error_rate...]\n");
    return 1;
  }
  if (error_rates.empty()) error_rates = {1e-2, 1e-3, 1e-6};
  fmt::print("Bits per item of 1 to 5, 10 and 14 full layers, and over RedisBloom's\n");
  for (const double error_rate : error_rates) compare_growth(error_rate);
  fmt::print("\nCPU ns per item    {:>14} {:>8} {:>8} {:>8} {:>8}\n", "add", "found", "absent",
             "found 1", "absent 1");
  for (const uint64_t items : sizes) {
    for (const double error_rate : error_rates) compare(items, error_rate);
  }
  return figures_path.empty() || write_figures(figures_path) ? 0 : 1;
}
