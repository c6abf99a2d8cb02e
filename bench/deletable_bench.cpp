// SPDX-License-Identifier: MIT
//
// Compares deletable filters with a plain native filter. Prints bits per item and the time of adds,
// lookups and deletions, hashing included. Replaces the items of filters at several loads, in
// rounds. Then prints false positives and the residue: the share of deleted items that the filter
// still finds. Prints the number of items that a long run of random operations has lost.
//
// Usage: deletable_bench [--quick] [--timings] [--seed n]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
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

using Subject = NamedParameters;

std::vector<Subject> subjects(bool with_native) {
  static constexpr std::array kWidths = {10, 4, 1};
  std::vector<Subject> all = deletable_layouts(kWidths, "{} {}");
  if (with_native) all.insert(all.begin(), {"native", {}});
  return all;
}

// CPU time per item of one kind of operation, when it is called item by item and in batches.
struct Cost {
  double single_ns = 0;
  double batch_ns = 0;
};

// Measures one kind of operation on `count` items from number `first` on. Calls single(hash) for
// the first half of the items and batch(hashes) for the second half.
template <class Single, class Batch>
Cost cost_of(const ItemHasher& hash, uint64_t kind, uint64_t first, uint64_t count, Single single,
             Batch batch) {
  const uint64_t half = count / 2 / kBatchItems * kBatchItems;
  const double start = cpu_ns();
  for (uint64_t i = 0; i < half; ++i) single(item_hash(hash, kind, first + i));
  const double middle = cpu_ns();
  std::array<ItemHash, kBatchItems> hashes;
  for (uint64_t i = half; i < 2 * half; i += kBatchItems) {
    for (uint64_t j = 0; j < kBatchItems; ++j) hashes[j] = item_hash(hash, kind, first + i + j);
    batch(std::span<const ItemHash>(hashes));
  }
  const double end = cpu_ns();
  for (uint64_t i = 2 * half; i < count; ++i) single(item_hash(hash, kind, first + i));
  return {(middle - start) / double(half), (end - middle) / double(half)};
}

// Number of equal parts (slices) of the items. Each filter processes one slice before the next
// filter does, so that other processes slow all filters equally. A result is the median over the
// times of the slices.
constexpr uint64_t kSlices = 3;

class Costs {
 public:
  void record(const Cost& cost) {
    single_ns_.push_back(cost.single_ns);
    batch_ns_.push_back(cost.batch_ns);
  }
  Cost median() const { return {median_of(single_ns_), median_of(batch_ns_)}; }
  // The result for adds is the mean of all times and not the median, because an add costs more the
  // fuller the filter is.
  Cost mean() const { return {mean_of(single_ns_), mean_of(batch_ns_)}; }

 private:
  static double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
  }
  static double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::nth_element(values, values.begin() + values.size() / 2);
    return values[values.size() / 2];
  }

  std::vector<double> single_ns_;
  std::vector<double> batch_ns_;
};

// Measures each kind of operation on a filter of `count` items. The items are divided into kSlices
// slices, and each slice is measured separately.
class Timing {
 public:
  // The filter has room for `count` items and never grows, so its only layer gets the whole error
  // rate.
  Timing(const Subject& subject, double error_rate, uint64_t count)
      : name(subject.name),
        filter_(make_filter(subject.parameters, error_rate, count, 0)),
        hash_(filter_->hasher()),
        slice_(count / kSlices) {}

  // Reads the filter's array into the cache, if it fits. Without this call the cache would hold the
  // arrays of the filters that were measured before.
  void read_array() { filter_->layer_bits(0).count_ones(); }
  void time_adds(uint64_t slice) {
    std::array<AddOutcome, kBatchItems> outcomes;
    add.record(cost_of(
        hash_, 1, slice * slice_, slice_, [&](ItemHash item) { filter_->add(item, kBudget); },
        [&](std::span<const ItemHash> hashes) { filter_->add_many(hashes, outcomes, kBudget); }));
  }
  void time_lookups(uint64_t slice) {
    present.record(cost_of_lookups(1, slice));
    found_ = 0;
    absent.record(cost_of_lookups(2, slice));
    error += double(found_) / double(slice_ * kSlices);
  }
  void time_removals(uint64_t slice) {
    if (!layout_row(filter_->layout()).clears_bits) return;
    std::array<Removal, kBatchItems> removals;
    remove.record(cost_of(
        hash_, 1, slice * slice_, slice_, [&](ItemHash item) { filter_->remove(item); },
        [&](std::span<const ItemHash> hashes) { filter_->remove_many(hashes, removals); }));
  }
  double bits_per_item() const {
    return double(filter_->layer_bits(0).size_bytes()) * 8 / double(slice_ * kSlices);
  }

  std::string name;
  double error = 0;
  Costs add, present, absent, remove;

 private:
  Cost cost_of_lookups(uint64_t kind, uint64_t slice) {
    std::array<bool, kBatchItems> found;
    return cost_of(
        hash_, kind, slice * slice_, slice_,
        [&](ItemHash item) { found_ += filter_->may_contain(item); },
        [&](std::span<const ItemHash> hashes) {
          filter_->may_contain_many(hashes, found);
          found_ += static_cast<uint64_t>(std::ranges::count(found, true));
        });
  }

  FilterPtr filter_;
  ItemHasher hash_;
  uint64_t slice_;
  uint64_t found_ = 0;
};

std::vector<Timing> timings_at(double error_rate, uint64_t count) {
  std::vector<Timing> timings;
  for (const Subject& subject : subjects(true)) timings.emplace_back(subject, error_rate, count);
  for (const auto work : {&Timing::time_adds, &Timing::time_lookups, &Timing::time_removals}) {
    for (uint64_t slice = 0; slice < kSlices; ++slice) {
      for (Timing& timing : timings) {
        timing.read_array();
        (timing.*work)(slice);
      }
    }
  }
  return timings;
}

std::string with_ratio(double ns, double native_ns) {
  if (ns == 0) return fmt::format("{:>12}", "-");
  return fmt::format("{:5.0f} {:5.2f}x", ns, ns / native_ns);
}

void print_timings(uint64_t count) {
  fmt::print(
      "\n{} items in a filter sized for them; CPU ns per item, singly | in batches of {}, and "
      "times the native filter of the same rate, deletions times its lookups of present items\n",
      count, kBatchItems);
  fmt::print(
      "{:>6} {:<14} {:>9} {:>9} | {:^12} {:^12} | {:^12} {:^12} | {:^12} {:^12} | {:^12} "
      "{:^12}\n",
      "rate", "layout", "bits/item", "measured", "add", "batch", "present", "batch", "absent",
      "batch", "delete", "batch");
  for (const double error_rate : {1e-2, 1e-3, 1e-4, 1e-6}) {
    const std::vector<Timing> timings = timings_at(error_rate, count);
    const Timing& native = timings.front();
    for (const Timing& timing : timings) {
      fmt::print("{:>6.0e} {:<14} {:9.2f} {:9.2e}", error_rate, timing.name, timing.bits_per_item(),
                 timing.error);
      const auto print = [](const Cost& cost, const Cost& base) {
        fmt::print(" | {} {}", with_ratio(cost.single_ns, base.single_ns),
                   with_ratio(cost.batch_ns, base.batch_ns));
      };
      print(timing.add.mean(), native.add.mean());
      print(timing.present.median(), native.present.median());
      print(timing.absent.median(), native.absent.median());
      print(timing.remove.median(), native.present.median());
      fmt::print("\n");
    }
  }
}

// Replaces the items of a filter one by one.
class Churn {
 public:
  Churn(const Subject& subject, double error_rate, uint64_t capacity, double load)
      : filter_(make_filter(subject.parameters, error_rate, capacity, 2)),
        hash_(filter_->hasher()) {
    const auto count = static_cast<uint64_t>(double(capacity) * load);
    while (live_.size() < count) add();
  }

  // Deletes each item, and adds a new item after each deletion. Items that cannot be deleted stay
  // in the filter.
  void round() {
    for (const uint64_t item : std::exchange(live_, {})) {
      stayed_ += filter_->remove(item_hash(hash_, 1, item)) == Removal::kStays;
      ++removed_;
      add();
    }
  }
  double error() const {
    constexpr uint64_t kProbes = 1'000'000;
    uint64_t found = 0;
    for (uint64_t i = 0; i < kProbes; ++i) found += filter_->may_contain(item_hash(hash_, 2, i));
    return double(found) / kProbes;
  }
  // Deletes a tenth of the items from a copy. Returns the share of deleted items that the copy
  // still finds.
  double residue() const {
    const auto copy = filter_->clone();
    const size_t count = live_.size() / 10;
    for (size_t i = 0; i < count; ++i) copy->remove(item_hash(hash_, 1, live_[i * 10]));
    uint64_t found = 0;
    for (size_t i = 0; i < count; ++i) {
      found += copy->may_contain(item_hash(hash_, 1, live_[i * 10]));
    }
    return double(found) / double(count);
  }
  uint64_t lost() const {
    return static_cast<uint64_t>(std::ranges::count_if(
        live_, [&](uint64_t item) { return !filter_->may_contain(item_hash(hash_, 1, item)); }));
  }
  double stayed() const { return removed_ == 0 ? 0 : double(stayed_) / double(removed_); }
  size_t layer_count() const { return filter_->layer_count(); }

 private:
  // Adds the next item that the filter counts. If an add does not return kAdded, the filter has not
  // counted the item, so the next item is tried.
  void add() {
    while (filter_->add(item_hash(hash_, 1, next_), kBudget) != AddOutcome::kAdded) ++next_;
    live_.push_back(next_++);
  }

  const FilterPtr filter_;
  const ItemHasher hash_;
  std::vector<uint64_t> live_;
  uint64_t next_ = 0;
  uint64_t removed_ = 0;
  uint64_t stayed_ = 0;
};

void print_churn(uint64_t capacity) {
  constexpr double kErrorRate = 0.01;
  fmt::print(
      "\nCapacity {}, rate {}; a round replaces every item. Error: absent items found. Residue: "
      "deleted items found. Stayed: deletions of all rounds that answered -1\n",
      capacity, kErrorRate);
  fmt::print("{:<14} {:>5} {:>6} {:>8} {:>8} {:>8} {:>6} {:>5}\n", "layout", "load", "rounds",
             "error", "residue", "stayed", "layers", "lost");
  for (const Subject& subject : subjects(false)) {
    for (const double load : {0.25, 0.5, 0.6, 0.75, 1.0}) {
      Churn churn(subject, kErrorRate, capacity, load);
      for (int rounds = 0; rounds <= 10; ++rounds) {
        if (rounds == 0 || rounds == 1 || rounds == 10) {
          fmt::print("{:<14} {:4.0f}% {:6} {:7.3f}% {:7.3f}% {:7.3f}% {:6} {:5}\n", subject.name,
                     load * 100, rounds, churn.error() * 100, churn.residue() * 100,
                     churn.stayed() * 100, churn.layer_count(), churn.lost());
        }
        if (rounds < 10) churn.round();
      }
    }
  }
}

// Compares random adds, lookups and deletions with an exact model. Returns how often a present item
// was not found, plus one if the filter's item count is wrong.
uint64_t run_model(const Subject& subject, uint64_t operations, uint64_t seed) {
  constexpr uint64_t kItems = 1 << 20;
  std::mt19937_64 random(seed);
  const FilterPtr filter = make_filter(subject.parameters, 0.01, 100'000, 2);
  const ItemHasher hash = filter->hasher();
  std::vector<bool> is_in(kItems);
  uint64_t lost = 0;
  uint64_t absent = 0;
  uint64_t wrong = 0;
  uint64_t counted = 0;
  for (uint64_t i = 0; i < operations; ++i) {
    const uint64_t choice = random();
    const uint64_t item = choice % kItems;
    const ItemHash place = item_hash(hash, seed, item);
    // The filter grows and shrinks in turn: in one million operations most are adds, in the next
    // million most are deletions.
    const bool adds = (choice >> 40) % 8 < ((i >> 20) % 2 == 0 ? 5U : 3U);
    if (!is_in[item] && adds) {
      if (filter->add(place, kBudget) == AddOutcome::kAdded) is_in[item] = true, ++counted;
    } else if (is_in[item] && !adds) {
      const Removal removal = filter->remove(place);
      lost += removal == Removal::kAbsent;
      if (removal != Removal::kStays) is_in[item] = false, --counted;
    } else {
      const bool found = filter->may_contain(place);
      if (is_in[item]) {
        lost += !found;
      } else {
        ++absent, wrong += found;
      }
    }
  }
  for (uint64_t item = 0; item < kItems; ++item) {
    lost += is_in[item] && !filter->may_contain(item_hash(hash, seed, item));
  }
  const bool is_counted = filter->item_count() == counted;
  fmt::print(
      "{:<14} seed {:<6} {} operations: lost {}, false positives {:.3f} %, layers {}, count "
      "{}\n",
      subject.name, seed, operations, lost, 100 * double(wrong) / double(absent),
      filter->layer_count(), is_counted ? "right" : "WRONG");
  return lost + !is_counted;
}

}  // namespace

int main(int argc, char** argv) {
  bool is_quick = false;
  bool only_timings = false;
  uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") is_quick = true;
    if (word == "--timings") only_timings = true;
    if (word == "--seed" && i + 1 < argc) seed = std::strtoull(argv[++i], nullptr, 10);
  }
  print_timings(is_quick ? 300'000 : 10'000'000);
  if (only_timings) return EXIT_SUCCESS;
  print_churn(is_quick ? 50'000 : 1'000'000);
  const uint64_t operations = is_quick ? 2'000'000 : 50'000'000;
  fmt::print("\nRandom operations beside an exact twin, filters that grow from 100,000\n");
  uint64_t wrong = 0;
  for (const Subject& subject : subjects(false)) wrong += run_model(subject, operations, seed++);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
