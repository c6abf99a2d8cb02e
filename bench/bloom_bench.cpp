// SPDX-License-Identifier: MIT
//
// Compares the native layout with a classic filter: nanoseconds per add and lookup, bits per item,
// measured error. On request it adds the layouts of other servers.
//
// Usage: bloom_bench [--items N] [--peers] [error_rate...]
// The default of a million items is a smoke test. --items 100000000 is larger than every cache, and
// takes some minutes and 800 MB. The filters process the items in turns, one chunk at a time, so
// that other processes slow all filters equally. Compare the printed ratios, not the times.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bloom/double_hashing.h"
#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"

namespace {

using namespace core::bloom;

// The positions of an item's bits in a classic Bloom filter, the reference of this benchmark. One
// multiplication maps each hash to a bit index. No layout with independent bits over the whole
// array needs less work per bit.
class ClassicProbes {
 public:
  ClassicProbes(ItemHash hash, const Geometry& geometry)
      : sum_(hash.first), step_(hash.second | 1), bit_count_(geometry.bit_count) {}
  uint64_t next() {
    const uint64_t bit = static_cast<uint64_t>((core::uint128_t{sum_} * bit_count_) >> 64);
    sum_ += step_;
    return bit;
  }

 private:
  uint64_t sum_;
  uint64_t step_;
  uint64_t bit_count_;
};

struct ClassicLayout : DoubleHashing<ClassicProbes> {
  static constexpr LayoutRow kRow = NativeLayout::kRow;
  static constexpr LayoutId kId = kRow.id;
  static Geometry size(uint64_t capacity, double error_rate) {
    const double bits = -double(capacity) * std::log2(error_rate) / std::log(2.0);
    Geometry geometry;
    geometry.bit_count = static_cast<uint64_t>(std::ceil(bits));
    geometry.hash_count = static_cast<uint16_t>(std::lround(-std::log2(error_rate)));
    return geometry;
  }
  // Prefetches all bits of an item for an add. A lookup of an absent item needs only about two
  // bits.
  static void prefetch_all(const uint64_t* words, const Geometry& geometry, ItemHash hash) {
    ClassicProbes probes(hash, geometry);
    for (unsigned i = 0; i < geometry.hash_count; ++i)
      __builtin_prefetch(words + probes.next() / 64);
  }
};

constexpr size_t kBatchItems = 32;
constexpr uint64_t kChunkItems = 1024 * kBatchItems;

// An item of 16 bytes, made from `kind` and `number`. Items of different kinds are never equal, so
// no item of kind kAbsent equals an added item, whose kind is kPresent.
struct Item {
  std::array<char, 16> bytes;
  Item(uint64_t kind, uint64_t number) {
    number = number * 0x9E3779B97F4A7C15 + kind;
    std::memcpy(bytes.data(), &number, 8);
    std::memcpy(bytes.data() + 8, &kind, 8);
  }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
};
constexpr uint64_t kPresent = 1;
constexpr uint64_t kAbsent = 2;

// `count` items of one kind. The first has the number `start`, and each next number is greater by
// `step`. `count` is a multiple of kBatchItems.
struct Chunk {
  uint64_t kind = kPresent;
  uint64_t start = 0;
  uint64_t step = 1;
  uint64_t count = 0;
  Item item(uint64_t index) const { return Item(kind, start + index * step); }
};

// kAlone: the processor finishes an item before it begins the next item, as when other work
// separates two commands.
// kLoop: one item per call. The processor may overlap several items.
// kBatch: the items are processed in groups.
enum Way : size_t { kAlone, kLoop, kBatch, kWays };
constexpr uint64_t kLeastItems = kWays * kBatchItems;

template <Way way>
void finish_item() {
#if defined(__x86_64__)
  if (way == kAlone) __builtin_ia32_lfence();
#endif
}

// Touches each page of a new filter, because a filter in use has touched all its pages.
void touch_pages(std::span<std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); i += 4096) static_cast<volatile std::byte&>(bytes[i]) = {};
}

// A filter that is used as in the server: it hashes the item first.
class Product {
 public:
  Product(LayoutId layout, uint64_t items, double error_rate) {
    FilterParameters parameters;
    parameters.capacity = items;
    parameters.error_rate = error_rate;
    parameters.expansion = 0;
    parameters.layout = layout;
    filter_ = ScalableFilter::create(parameters, budget_).value();
    touch_pages(filter_->mutable_layer_bits(0).bytes());
    hash_ = filter_->hasher();
  }
  Geometry geometry() const { return filter_->layer_info(0).geometry; }

  template <Way way>
  void add(const Chunk& chunk) {
    for (uint64_t i = 0; i < chunk.count; ++i, finish_item<way>()) {
      filter_->add(hash_(chunk.item(i).view()), budget_);
    }
  }
  void add_batched(const Chunk& chunk) {
    std::array<AddOutcome, kBatchItems> outcomes;
    for (uint64_t i = 0; i < chunk.count; i += kBatchItems) {
      filter_->add_many(hashes_of(chunk, i), outcomes, budget_);
    }
  }
  template <Way way>
  uint64_t find(const Chunk& chunk) const {
    uint64_t found = 0;
    for (uint64_t i = 0; i < chunk.count; ++i, finish_item<way>()) {
      found += filter_->may_contain(hash_(chunk.item(i).view()));
    }
    return found;
  }
  uint64_t find_batched(const Chunk& chunk) const {
    std::array<bool, kBatchItems> answers;
    uint64_t found = 0;
    for (uint64_t i = 0; i < chunk.count; i += kBatchItems) {
      filter_->may_contain_many(hashes_of(chunk, i), answers);
      for (const bool answer : answers) found += answer;
    }
    return found;
  }

 private:
  std::array<ItemHash, kBatchItems> hashes_of(const Chunk& chunk, uint64_t first) const {
    std::array<ItemHash, kBatchItems> hashes;
    for (size_t i = 0; i < kBatchItems; ++i) hashes[i] = hash_(chunk.item(first + i).view());
    return hashes;
  }

  core::UnlimitedMemory budget_;
  std::unique_ptr<ScalableFilter> filter_;
  ItemHasher hash_{NativeLayout::kId, false, kFixedSeed};
};

// A classic Bloom filter without the code that a server needs in addition.
class Classic {
 public:
  Classic(uint64_t items, double error_rate)
      : layer_(*Layer::create({items, error_rate, ClassicLayout::size(items, error_rate)})) {
    touch_pages(layer_.bits().bytes());
  }
  Geometry geometry() const { return layer_.geometry(); }

  template <Way way>
  void add(const Chunk& chunk) {
    for (uint64_t i = 0; i < chunk.count; ++i, finish_item<way>()) {
      layer_.mark<ClassicLayout>(hash_native(chunk.item(i).view()));
    }
  }
  void add_batched(const Chunk& chunk) {
    std::array<ItemHash, kBatchItems> hashes;
    for (uint64_t start = 0; start < chunk.count; start += kBatchItems) {
      for (size_t i = 0; i < kBatchItems; ++i) {
        hashes[i] = hash_native(chunk.item(start + i).view());
        ClassicLayout::prefetch_all(layer_.bits().words(), geometry(), hashes[i]);
      }
      for (const ItemHash& hash : hashes) layer_.mark<ClassicLayout>(hash);
    }
  }
  template <Way way>
  uint64_t find(const Chunk& chunk) const {
    uint64_t found = 0;
    for (uint64_t i = 0; i < chunk.count; ++i, finish_item<way>()) {
      found += layer_.check<ClassicLayout>(hash_native(chunk.item(i).view()));
    }
    return found;
  }
  uint64_t find_batched(const Chunk& chunk) const {
    std::array<ItemHash, kBatchItems> hashes;
    uint64_t found = 0;
    for (uint64_t start = 0; start < chunk.count; start += kBatchItems) {
      for (size_t i = 0; i < kBatchItems; ++i) {
        hashes[i] = hash_native(chunk.item(start + i).view());
        layer_.prefetch<ClassicLayout>(hashes[i]);
      }
      for (const ItemHash& hash : hashes) found += layer_.check<ClassicLayout>(hash);
    }
    return found;
  }

 private:
  Layer layer_;
};

// Tally: the total time and number of items of all runs of one operation.
struct Tally {
  double nanoseconds = 0;
  uint64_t items = 0;
  double per_item() const { return nanoseconds / double(items); }

  template <class Function>
  void time(uint64_t count, Function&& function) {
    const auto start = std::chrono::steady_clock::now();
    function();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    nanoseconds += spent.count();
    items += count;
  }
};

struct Figures {
  std::array<Tally, kWays> add, present, absent;
  uint64_t hits = 0;
  uint64_t wrong_hits = 0;
};

template <class Filter>
struct Contestant {
  std::string_view name;
  Filter filter;
  Figures figures;

  void add(const Chunk& chunk, Way way) {
    figures.add[way].time(chunk.count, [&] {
      if (way == kAlone) filter.template add<kAlone>(chunk);
      if (way == kLoop) filter.template add<kLoop>(chunk);
      if (way == kBatch) filter.add_batched(chunk);
    });
  }
  void find(const Chunk& chunk, Way way) {
    Tally& tally = (chunk.kind == kPresent ? figures.present : figures.absent)[way];
    uint64_t& hits = chunk.kind == kPresent ? figures.hits : figures.wrong_hits;
    tally.time(chunk.count, [&] {
      if (way == kAlone) hits += filter.template find<kAlone>(chunk);
      if (way == kLoop) hits += filter.template find<kLoop>(chunk);
      if (way == kBatch) hits += filter.find_batched(chunk);
    });
  }
};

void print_head() {
  fmt::print("{:>6} {:<12} {:>3} {:>2} {:>6} {:>6} {:>9}", "asked", "layout", "k", "g", "bits/i",
             "memory", "measured");
  for (const auto operation : {"add", "present", "absent"}) {
    fmt::print(" | {:>7} {:>6} {:>6}", operation, "loop", "batch");
  }
  fmt::print("\n");
}

uint64_t count_items(const std::array<Tally, kWays>& tallies) {
  uint64_t sum = 0;
  for (const Tally& tally : tallies) sum += tally.items;
  return sum;
}

template <class Filter>
void print_contestant(const Contestant<Filter>& contestant, uint64_t items, double error_rate) {
  const Geometry geometry = contestant.filter.geometry();
  const Figures& figures = contestant.figures;
  const double optimum = -std::log2(error_rate) / std::log(2.0);
  const double bits = double(geometry.bit_count) / double(items);
  fmt::print("{:>6.0e} {:<12} {:>3} {:>2} {:>6.2f} {:>+5.1f}% {:>9.2e}", error_rate,
             contestant.name, geometry.hash_count, geometry.lines_per_lookup, bits,
             (bits / optimum - 1) * 100,
             double(figures.wrong_hits) / double(count_items(figures.absent)));
  for (const auto& ways : {figures.add, figures.present, figures.absent}) {
    fmt::print(" | {:>7.1f} {:>6.1f} {:>6.1f}", ways[kAlone].per_item(), ways[kLoop].per_item(),
               ways[kBatch].per_item());
  }
  fmt::print("{}\n", figures.hits == count_items(figures.present) ? "" : "  FALSE NEGATIVES");
}

// Prints how many times faster the native layout is than the classic filter. There is one column
// for each operation and each way to call the classic filter. For the first row, the native filter
// is called in the same way as the classic filter. For the second row, the native filter is always
// called in batches, as in this server. Other servers process items one by one.
void print_ratios(const Figures& native, const Figures& classic) {
  for (const bool against_batches : {false, true}) {
    fmt::print("       {:<43}", against_batches ? "classic / native batch" : "classic / native");
    for (const auto operation : {&Figures::add, &Figures::present, &Figures::absent}) {
      const auto ratio = [&](Way way) {
        const Tally& ours = (native.*operation)[against_batches ? kBatch : way];
        return (classic.*operation)[way].per_item() / ours.per_item();
      };
      fmt::print(" | {:>6.2f}x {:>5.2f}x {:>5.2f}x", ratio(kAlone), ratio(kLoop), ratio(kBatch));
    }
    fmt::print("\n");
  }
}

template <class... Filters>
void run(uint64_t items, double error_rate, Contestant<Filters>&... contestants) {
  uint64_t turn = 0;
  const uint64_t added_at_once = std::min(kChunkItems, items / kLeastItems * kBatchItems);
  for (uint64_t start = 0; start < items; start += added_at_once, ++turn) {
    const uint64_t count = std::min(added_at_once, items - start);
    (contestants.add({kPresent, start, 1, count}, Way(turn % kWays)), ...);
  }
  // Each of the three kinds of lookups gets at most about 4,000,000 absent items. At an error rate
  // of one in a million, these lookups give about twelve false positives in total. Each contestant
  // looks up an absent item only once.
  const auto per_way = std::clamp(uint64_t(4 / error_rate), uint64_t{1} << 20, uint64_t{4'000'000});
  const uint64_t chunk_items = std::min(kChunkItems, items);
  const uint64_t step = items / chunk_items;
  for (turn = 0; turn < (per_way / chunk_items + 1) * kWays; ++turn) {
    const Way way = Way(turn % kWays);
    (contestants.find({kPresent, turn % step, step, chunk_items}, way), ...);
    (contestants.find({kAbsent, turn * chunk_items, 1, chunk_items}, way), ...);
  }
  (print_contestant(contestants, items, error_rate), ...);
}

void compare(uint64_t items, double error_rate, bool with_peers) {
  const auto product = [&](const LayoutRow& layout) {
    return Contestant<Product>{layout.name, {layout.id, items, error_rate}, {}};
  };
  Contestant<Product> native = product(LaneLayout::kRow);
  Contestant<Classic> classic{"classic", {items, error_rate}, {}};
  if (with_peers) {
    [&]<size_t... kPeer>(std::index_sequence<kPeer...> /*peers*/) {
      std::array peers{product(kLayoutRows[kPeer])...};
      run(items, error_rate, native, classic, peers[kPeer]...);
    }
    (std::make_index_sequence<kLayoutRows.size()>());
  } else {
    run(items, error_rate, native, classic);
  }
  print_ratios(native.figures, classic.figures);
}

}  // namespace

int main(int argc, char** argv) {
  // Flushes the output after each row, so that the rows of a long run appear early even in a file.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  uint64_t items = 1'000'000;
  bool with_peers = false, is_valid = true;
  std::vector<double> error_rates;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--items" && i + 1 < argc) {
      items = std::strtoull(argv[++i], nullptr, 10) / kBatchItems * kBatchItems;
    } else if (argument == "--peers") {
      with_peers = true;
    } else {
      error_rates.push_back(std::strtod(argv[i], nullptr));
      is_valid &= error_rates.back() > 0 && error_rates.back() < 1;
    }
  }
  if (!is_valid || items < kLeastItems || items > 10'000'000'000) {
    fmt::print(stderr, "usage: bloom_bench [--items N] [--peers] [error_rate...]\n");
    return 1;
  }
  if (error_rates.empty()) error_rates = {0.01, 1e-4, 1e-6};
  fmt::print("{} items in one layer; ns per item: alone, in a loop, in batches of {}\n", items,
             kBatchItems);
  print_head();
  for (const double error_rate : error_rates) compare(items, error_rate, with_peers);
  return 0;
}
