// SPDX-License-Identifier: MIT
//
// Prints what the layouts cost: bits per item, measured error, nanoseconds per add and lookup; then
// what the series of layer errors costs as a filter grows.
//
// Usage: bloom_bench [items [error_rate…]]   (default 1000000; 100000000 for figures out of cache)
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
#include <vector>

#include "core/bloom/double_hashing.h"
#include "core/bloom/native_layout.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/scalable_filter.h"
#include "core/bloom/valkeybloom_layout.h"

namespace {

using namespace core::bloom;

// The yardstick: as many bits and hashes as theory asks for, an index from each hash by
// multiplication. No layout with independent bits over the whole array does less work per probe.
class ClassicProbes {
 public:
  ClassicProbes(ItemHash hash, const Geometry& geometry)
      : sum_(hash.first), step_(hash.second | 1), bit_count_(geometry.bit_count) {}
  uint64_t next() {
    const uint64_t bit = static_cast<uint64_t>((uint128_t{sum_} * bit_count_) >> 64);
    sum_ += step_;
    return bit;
  }

 private:
  uint64_t sum_;
  uint64_t step_;
  uint64_t bit_count_;
};

struct ClassicLayout : DoubleHashing<ClassicProbes> {
  static constexpr LayoutId kId = LayoutId::kNative;
  static std::optional<Geometry> size(uint64_t capacity, double error_rate) {
    const double bits = -double(capacity) * std::log2(error_rate) / std::log(2.0);
    Geometry geometry;
    geometry.bit_count = static_cast<uint64_t>(std::ceil(bits));
    geometry.hash_count = static_cast<uint16_t>(std::lround(-std::log2(error_rate)));
    return geometry;
  }
};

constexpr size_t kBatchItems = 32;

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
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / double(items);
}

template <class Layout>
uint64_t look_up(const Layer& layer, uint64_t kind, uint64_t count, uint64_t step) {
  const ItemHasher hash(Layout::kId, false, kFixedSeed);
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; ++i) {
    found += layer.check<Layout>(hash(Item(kind, i * step).view()));
  }
  return found;
}

template <class Layout>
uint64_t look_up_batched(const Layer& layer, uint64_t kind, uint64_t count, uint64_t step) {
  const ItemHasher hash(Layout::kId, false, kFixedSeed);
  std::array<ItemHash, kBatchItems> hashes;
  uint64_t found = 0;
  for (uint64_t start = 0; start < count; start += kBatchItems) {
    for (size_t i = 0; i < kBatchItems; ++i) {
      hashes[i] = hash(Item(kind, (start + i) * step).view());
      layer.prefetch<Layout>(hashes[i]);
    }
    for (const ItemHash& item : hashes) found += layer.check<Layout>(item);
  }
  return found;
}

template <class Layout>
void add_batched(Layer& layer, uint64_t count) {
  const ItemHasher hash(Layout::kId, false, kFixedSeed);
  std::array<ItemHash, kBatchItems> hashes;
  for (uint64_t start = 0; start < count; start += kBatchItems) {
    for (size_t i = 0; i < kBatchItems; ++i) {
      hashes[i] = hash(Item(1, start + i).view());
      layer.prefetch<Layout>(hashes[i]);
    }
    for (const ItemHash& item : hashes) layer.mark<Layout>(item);
  }
}

template <class Layout>
void print_layout(std::string_view name, uint64_t items, double error_rate) {
  const auto geometry = Layout::size(items, error_rate);
  auto layer = Layer::create({items, error_rate, *geometry});
  if (!layer) return;
  const double classic_bits = -std::log2(error_rate) / std::log(2.0);
  const double bits = double(geometry->bit_count) / double(items);
  const double add_ns = nanoseconds_per_item(items, [&] { add_batched<Layout>(*layer, items); });
  const uint64_t probes = std::min<uint64_t>(items, 10'000'000) / kBatchItems * kBatchItems;
  const uint64_t step = items / probes;
  uint64_t found = 0, wrong = 0;
  const auto timed = [&](uint64_t& hits, auto function, uint64_t kind) {
    return nanoseconds_per_item(probes, [&] { hits += function(*layer, kind, probes, step); });
  };
  const double present_ns = timed(found, look_up<Layout>, 1);
  const double absent_ns = timed(wrong, look_up<Layout>, 2);
  const double present_batched_ns = timed(found, look_up_batched<Layout>, 1);
  const double absent_batched_ns = timed(wrong, look_up_batched<Layout>, 2);
  fmt::print(
      "{:<12} {:>8.0e} {:>4} {:>5} {:>7.2f} {:>+6.1f}% {:>9.2e} {:>7.1f} {:>8.1f} {:>7.1f} "
      "{:>9.1f} {:>8.1f}{}\n",
      name, error_rate, geometry->hash_count, geometry->lines_per_lookup, bits,
      (bits / classic_bits - 1) * 100, double(wrong) / double(2 * probes), add_ns, present_ns,
      absent_ns, present_batched_ns, absent_batched_ns,
      found == 2 * probes ? "" : "  FALSE NEGATIVES");
}

void print_layouts(uint64_t items, std::span<const double> error_rates) {
  fmt::print("{} items in one layer; ns per item; batches of {}\n", items, kBatchItems);
  fmt::print("{:<12} {:>8} {:>4} {:>5} {:>7} {:>7} {:>9} {:>7} {:>8} {:>7} {:>9} {:>8}\n", "layout",
             "asked", "k", "lines", "bits/it", "memory", "measured", "add", "present", "absent",
             "present/b", "absent/b");
  for (const double error_rate : error_rates) {
    print_layout<ClassicLayout>("classic", items, error_rate);
    print_layout<NativeLayout>("native", items, error_rate);
    print_layout<RedisBloomLayout>("redisbloom", items, error_rate);
    print_layout<ValkeyBloomLayout>("valkey-bloom", items, error_rate);
  }
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

int main(int argc, char** argv) {
  // A long run shows each row as soon as it is there, also in a file.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const uint64_t items = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  if (items < kBatchItems) {
    fmt::print(stderr, "usage: bloom_bench [items >= {} [error_rate...]]\n", kBatchItems);
    return 1;
  }
  std::vector<double> error_rates;
  for (int i = 2; i < argc; ++i) error_rates.push_back(std::strtod(argv[i], nullptr));
  if (error_rates.empty()) error_rates = {0.01, 1e-4, 1e-6};
  print_layouts(items, error_rates);

  fmt::print("\nGrowth from 1000 items at 1 %, every layer full\n");
  fmt::print("{:<18} {:>6} {:>9} {:>8} {:>9} {:>9} {:>8}\n", "series", "layers", "items", "bits/it",
             "measured", "present", "absent");
  print_growth(0, LayoutId::kNative, "native");
  print_growth(0.5, LayoutId::kNative, "geometric 0.5");
  print_growth(0.8, LayoutId::kNative, "geometric 0.8");
  print_growth(0.9, LayoutId::kNative, "geometric 0.9");
  print_growth(0, LayoutId::kRedisBloom, "redisbloom");
  return 0;
}
