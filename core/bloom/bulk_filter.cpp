// SPDX-License-Identifier: MIT
#include "core/bloom/bulk_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/bloom/layouts.h"
#include "core/bloom/line_kernels.h"
#include "core/prefetch.h"

namespace core::bloom {
namespace {

// Batches smaller than this are added by one thread, because further threads would cost more time
// than they save.
constexpr size_t kBatchItemsMin = 1024;
constexpr size_t kBatchItemsMax = size_t{1} << 16;
// Maximum number of marks per batch, for all threads together. A mark holds the position of a bit
// to set and the index of the bit's item, in 8 bytes. So all marks take at most 32 MiB.
constexpr size_t kMarksMax = size_t{4} << 20;
// Maximum number of regions into which the array is divided. A region is small enough to stay in
// the cache while its bits are set. A thread can append to the lists of so few regions with few
// cache misses.
constexpr uint64_t kRegionsMax = 256;
// Minimum size of a region in bits, as the exponent of a power of two: 2^9 bits are one cache line.
constexpr unsigned kRegionShiftMin = 9;
// Prefetch distance, in marks (bits to set).
constexpr size_t kMarksAhead = 24;

template <class Layout>
concept ListsBits = requires(const Geometry& geometry, ItemHash hash, void (*visit)(uint64_t)) {
  Layout::visit_bits(geometry, hash, visit);
};

Error cannot_grow(const ScalableFilter& filter) {
  if (!filter.next_layer_bytes()) return Error{std::string(kNoNextLayer)};
  return Error{"OOM the filter is full and its next layer does not fit in memory",
               ErrorCode::kOutOfMemory};
}
Error is_full() {
  return Error{"ERR the filter is full and does not scale"};
}

}  // namespace

Result<std::unique_ptr<BulkFilter>> BulkFilter::create(const FilterParameters& asked,
                                                       const MemoryBudget& budget,
                                                       ThreadTeam& team) {
  auto filter = ScalableFilter::create(asked, budget);
  if (!filter) return filter.error();
  return std::unique_ptr<BulkFilter>(new BulkFilter(std::move(*filter), budget, team));
}

// Adds the items on this thread.
Result<> BulkFilter::add_alone(std::span<const ItemHash> hashes) {
  std::array<AddOutcome, kGroupItems> outcomes;
  while (!hashes.empty()) {
    const auto group = hashes.first(std::min(hashes.size(), kGroupItems));
    const size_t done = filter_->add_many(group, outcomes, budget_);
    for (const AddOutcome outcome : std::span(outcomes).first(done)) {
      if (outcome == AddOutcome::kFull) return is_full();
      if (outcome == AddOutcome::kCannotGrow) return cannot_grow(*filter_);
    }
    hashes = hashes.subspan(group.size());
  }
  return {};
}

size_t BulkFilter::batch_size() const {
  const size_t by_marks = kMarksMax / last_layer().geometry().hash_count;
  return std::clamp(by_marks, kBatchItemsMin, kBatchItemsMax);
}

// Size of a region in bits, as the exponent of a power of two.
unsigned BulkFilter::region_shift() const {
  const uint64_t least = (last_layer().bits().bit_count() + kRegionsMax - 1) / kRegionsMax;
  return std::max<unsigned>(kRegionShiftMin, static_cast<unsigned>(std::bit_width(least - 1)));
}

// Adds hashes of one batch. `first` is the index of hashes[0] in that batch.
template <class Layout>
void BulkFilter::list_marks(std::span<const ItemHash> hashes, size_t first,
                            std::vector<Marks>& regions) {
  const std::span<const Layer> older = filter_->layers().first(filter_->layer_count() - 1);
  const Geometry geometry = last_layer().geometry();
  const unsigned shift = region_shift();
  regions.resize(((geometry.bit_count - 1) >> shift) + 1);
  for (Marks& marks : regions) marks.clear();
  std::array<bool, kGroupItems> found{};
  for (size_t start = 0; start < hashes.size(); start += kGroupItems) {
    const auto group = hashes.subspan(start, std::min(kGroupItems, hashes.size() - start));
    found.fill(false);
    check_layers_group<Layout>(older, group, std::span(found).first(group.size()));
    for (size_t i = 0; i < group.size(); ++i) {
      if (found[i]) continue;
      Layout::visit_bits(geometry, group[i], [&, item = first + start + i](uint64_t bit) {
        regions[bit >> shift].emplace_back(bit, item);
      });
    }
  }
}

void BulkFilter::mark_regions() {
  uint64_t* const words = last_layer().bits().words();
  next_region_ = 0;
  team_.run([&](unsigned /*member*/) {
    const size_t region_count = marks_.front().size();
    for (size_t region; (region = next_region_++) < region_count;) {
      // Each thread of the team has listed the bits of a run of consecutive items. So the bits are
      // set in the order of the batch if the lists are visited in the order of the threads.
      for (const std::vector<Marks>& listed : marks_) {
        const Marks& marks = listed[region];
        for (size_t i = 0; i < marks.size(); ++i) {
          const size_t ahead = std::min(i + kMarksAhead, marks.size() - 1);
          core::prefetch_for_write(words + marks[ahead].bit() / 64);
          uint64_t& word = words[marks[i].bit() / 64];
          const uint64_t mask = uint64_t{1} << (marks[i].bit() % 64);
          if ((word & mask) != 0) continue;
          word |= mask;
          // The store is atomic: a thread that sets bits of the same item in another region may
          // store the same flag.
          std::atomic_ref(has_changed_[marks[i].item()]).store(1, std::memory_order_relaxed);
        }
      }
    }
  });
}

template <class Layout>
void BulkFilter::add_batch(std::span<const ItemHash> hashes) {
  has_changed_.assign(hashes.size(), 0);
  const size_t share = (hashes.size() + team_.size() - 1) / team_.size();
  team_.run([&](unsigned member) {
    const size_t first = std::min(share * member, hashes.size());
    const size_t count = std::min(share, hashes.size() - first);
    list_marks<Layout>(hashes.subspan(first, count), first, marks_[member]);
  });
  mark_regions();
  last_layer().count_new(static_cast<uint64_t>(std::ranges::count(has_changed_, 1)));
}

template <class Layout>
Result<> BulkFilter::add_as(std::span<const ItemHash> hashes) {
  while (!hashes.empty()) {
    size_t size = std::min({hashes.size(), batch_size(), size_t{last_layer().room()}});
    if (size >= kBatchItemsMin && last_layer().bits().bit_count() <= Mark::kBitsMax) {
      add_batch<Layout>(hashes.first(size));
    } else {
      size = std::min(hashes.size(), kGroupItems);
      if (auto added = add_alone(hashes.first(size)); !added) return added;
    }
    hashes = hashes.subspan(size);
  }
  return {};
}

Result<> BulkFilter::add(std::span<const ItemHash> hashes) {
  return with_layout(filter_->layout(), [&]<class Layout>() {
    if constexpr (ListsBits<Layout>) {
      return add_as<Layout>(hashes);
    } else {
      return add_alone(hashes);
    }
  });
}

}  // namespace core::bloom
