// SPDX-License-Identifier: MIT
//
// Adds Boost.Bloom's filters to engine_bench. The library chooses its instructions when it is
// compiled, so this file is compiled for the processor of the machine.
#include "bench/engine/contestant.h"

#ifdef BLOOMERY_WITH_BOOST_BLOOM

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <boost/bloom.hpp>

#include <utility>

namespace bench {
namespace {

struct ItemHash64 {
  using is_avalanching = void;
  std::size_t operator()(const Item& item) const { return XXH3_64bits(item.data(), item.size()); }
};

template <size_t kBlocks, class Block>
class BoostFilter final : public Contestant {
 public:
  using Filter = boost::bloom::filter<Item, kBlocks, Block, 0, ItemHash64>;

  BoostFilter(uint64_t items, double error_rate) : filter_(items, error_rate) {}

  static double bits_per_item(uint64_t items, double error_rate) {
    return double(Filter::capacity_for(items, error_rate)) / double(items);
  }

  void clear() override { filter_.clear(); }
  void add(std::span<const Item> items) override {
    for (size_t i = 0; i < items.size(); i += kEngineBatchItems) {
      filter_.insert(items.data() + i, items.data() + i + kEngineBatchItems);
    }
  }
  uint64_t find(std::span<const Item> items) const override {
    uint64_t found = 0;
    for (size_t i = 0; i < items.size(); i += kEngineBatchItems) {
      filter_.may_contain(items.data() + i, items.data() + i + kEngineBatchItems,
                          [&](const Item& /*item*/, bool is_found) { found += is_found; });
    }
    return found;
  }
  uint64_t find_singly(std::span<const Item> items) const override {
    uint64_t found = 0;
    for (const Item& item : items) found += filter_.may_contain(item);
    return found;
  }

 private:
  Filter filter_;
};

struct Request {
  uint64_t items;
  double error_rate;
  double bits_per_item_max;
};

template <size_t kBlocks, class Block>
void append(std::vector<Candidate>& all, const Request& request, const char* block) {
  using Filter = BoostFilter<kBlocks, Block>;
  const double bits = Filter::bits_per_item(request.items, request.error_rate);
  if (bits > request.bits_per_item_max) return;
  all.push_back({std::to_string(kBlocks) + " x " + block, bits,
                 std::make_unique<Filter>(request.items, request.error_rate)});
}

// kBlocks is the number of blocks in which an item sets bits. For each number of bits in kBits,
// adds filters that set this many bits per block.
template <size_t kBlocks, size_t... kBits>
void append_all(std::vector<Candidate>& all, const Request& request,
                std::index_sequence<kBits...> /*bits*/) {
  using namespace boost::bloom;
  const auto name = [](const char* block, size_t bits) {
    return std::string(block) + "<" + std::to_string(bits) + ">";
  };
  (append<kBlocks, block<uint64_t[8], kBits>>(all, request, name("block512", kBits).c_str()), ...);
  (append<kBlocks, fast_multiblock32<kBits>>(all, request,
                                             name("fast_multiblock32", kBits).c_str()),
   ...);
  (append<kBlocks, fast_multiblock64<kBits>>(all, request,
                                             name("fast_multiblock64", kBits).c_str()),
   ...);
}

}  // namespace

std::vector<Candidate> boost_filters(uint64_t items, double error_rate, double bits_per_item_max) {
  std::vector<Candidate> all;
  const Request request{items, error_rate, bits_per_item_max};
  append_all<1>(all, request, std::index_sequence<5, 6, 7, 8, 9, 10, 11>());
  append_all<2>(all, request, std::index_sequence<4, 5, 6, 7, 8>());
  append_all<3>(all, request, std::index_sequence<5, 6, 7>());
  append_all<4>(all, request, std::index_sequence<5>());
  return all;
}

}  // namespace bench

#else

namespace bench {
std::vector<Candidate> boost_filters(uint64_t /*items*/, double /*error_rate*/,
                                     double /*bits_per_item_max*/) {
  return {};
}
}  // namespace bench

#endif
