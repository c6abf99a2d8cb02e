// SPDX-License-Identifier: MIT
#include "core/bulk/bulk_filter.h"

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

bool lists_bits(LayoutId layout) {
  return with_layout(layout, []<class Layout>() { return ListsBits<Layout>; });
}

Error cannot_grow() {
  return Error{"OOM the filter is full and its next layer does not fit in memory",
               ErrorCode::kOutOfMemory};
}
Error is_full() {
  return Error{"ERR the filter is full and does not scale"};
}

std::optional<LayerParts> make_layer(const LayerPlan& plan, LayoutId layout) {
  auto bits = BitArray::allocate(plan.geometry.bit_count, array_sharing(layout));
  if (!bits) return std::nullopt;
  return LayerParts{plan.geometry, plan.capacity, 0, plan.error_rate, std::move(*bits)};
}

}  // namespace

Result<std::unique_ptr<BulkFilter>> BulkFilter::create(const FilterParameters& asked,
                                                       const MemoryBudget& budget,
                                                       ThreadTeam& team) {
  const FilterParameters parameters = without_unused(asked);
  std::unique_ptr<BulkFilter> filter(new BulkFilter(parameters, budget, team));
  if (!lists_bits(parameters.layout)) {
    auto whole = ScalableFilter::create(parameters, budget);
    if (!whole) return whole.error();
    filter->whole_ = std::move(*whole);
    return filter;
  }
  const auto plan = ScalableFilter::plan(parameters);
  if (!plan) return plan.error();
  const uint64_t size_bytes = plan->geometry.size_bytes();
  if (!budget.fits(size_bytes)) return does_not_fit(size_bytes);
  auto layer = make_layer(*plan, parameters.layout);
  if (!layer) return does_not_fit(size_bytes);
  filter->layers_.push_back(std::move(*layer));
  filter->marks_.resize(team.size());
  return filter;
}

ItemHasher BulkFilter::hasher() const {
  return {parameters_.layout, parameters_.hashes_32_bits, parameters_.seed};
}

uint64_t BulkFilter::item_count() const {
  if (whole_ != nullptr) return whole_->item_count();
  uint64_t sum = 0;
  for (const LayerParts& layer : layers_) sum += layer.item_count;
  return sum;
}

Result<std::unique_ptr<ScalableFilter>> BulkFilter::finish() {
  if (whole_ != nullptr) return std::move(whole_);
  return ScalableFilter::assemble(parameters_, std::move(layers_));
}

Result<> BulkFilter::add_to_whole(std::span<const ItemHash> hashes) {
  std::vector<AddOutcome> outcomes(std::min(hashes.size(), kBatchItemsMax));
  while (!hashes.empty()) {
    const auto batch = hashes.first(std::min(hashes.size(), kBatchItemsMax));
    const size_t done = whole_->add_many(batch, outcomes, budget_);
    for (const AddOutcome outcome : std::span(outcomes).first(done)) {
      if (outcome == AddOutcome::kFull) return is_full();
      if (outcome == AddOutcome::kCannotGrow) return cannot_grow();
    }
    hashes = hashes.subspan(batch.size());
  }
  return {};
}

Result<> BulkFilter::grow() {
  if (!parameters_.is_scaling()) return is_full();
  const LayerParts& last = layers_.back();
  const auto plan = plan_next_layer(parameters_, static_cast<uint32_t>(layers_.size()),
                                    {last.capacity, last.error_rate, last.geometry});
  if (!plan || !budget_.fits(plan->geometry.size_bytes())) return cannot_grow();
  auto layer = make_layer(*plan, parameters_.layout);
  if (!layer) return cannot_grow();
  layers_.push_back(std::move(*layer));
  return {};
}

size_t BulkFilter::batch_size() const {
  const size_t by_marks = kMarksMax / layers_.back().geometry.hash_count;
  return std::clamp(by_marks, kBatchItemsMin, kBatchItemsMax);
}

// Size of a region in bits, as the exponent of a power of two.
unsigned BulkFilter::region_shift() const {
  const uint64_t least = (layers_.back().geometry.bit_count + kRegionsMax - 1) / kRegionsMax;
  return std::max<unsigned>(kRegionShiftMin, static_cast<unsigned>(std::bit_width(least - 1)));
}

template <class Layout>
void BulkFilter::find_in_older(std::span<const ItemHash> hashes, std::span<bool> found) const {
  // Visits the newest layer first, as ScalableFilter does.
  for (size_t left = layers_.size() - 1; left > 0;) {
    std::array<ArrayView, kGroupArrays> arrays;
    const size_t count = std::min(left, arrays.size());
    for (size_t i = 0; i < count; ++i) {
      const LayerParts& layer = layers_[left - 1 - i];
      arrays[i] = {layer.bits.words(), layer.geometry};
    }
    Layout::check_group(std::span<const ArrayView>(arrays).first(count), hashes, found);
    left -= count;
  }
}

// Adds at most a group of items, on this thread. Returns the number of items processed.
template <class Layout>
Result<size_t> BulkFilter::add_group(std::span<const ItemHash> hashes) {
  LayerParts* last = &layers_.back();
  const uint64_t room = last->capacity - std::min(last->capacity, last->item_count);
  hashes = hashes.first(std::min(hashes.size(), kGroupItems));
  if (room > 0) hashes = hashes.first(std::min<uint64_t>(hashes.size(), room));
  std::array<bool, kGroupItems> answers{};
  const auto found = std::span(answers).first(hashes.size());
  find_in_older<Layout>(hashes, found);
  if (room > 0) {
    last->item_count += Layout::mark_group(last->bits.words(), last->geometry, hashes, found);
    return hashes.size();
  }
  const std::array full{ArrayView{last->bits.words(), last->geometry}};
  Layout::check_group(full, hashes, found);
  const auto first_new = static_cast<size_t>(std::ranges::find(found, false) - found.begin());
  if (first_new == hashes.size()) return first_new;
  if (auto grown = grow(); !grown) return grown.error();
  last = &layers_.back();
  Layout::mark(last->bits.words(), last->geometry, hashes[first_new]);
  ++last->item_count;
  return first_new + 1;
}

// Adds hashes of one batch. `first` is the index of hashes[0] in that batch.
template <class Layout>
void BulkFilter::list_marks(std::span<const ItemHash> hashes, size_t first,
                            std::vector<Marks>& regions) {
  const Geometry geometry = layers_.back().geometry;
  const unsigned shift = region_shift();
  regions.resize(((geometry.bit_count - 1) >> shift) + 1);
  for (Marks& marks : regions) marks.clear();
  std::array<bool, kGroupItems> found{};
  for (size_t start = 0; start < hashes.size(); start += kGroupItems) {
    const auto group = hashes.subspan(start, std::min(kGroupItems, hashes.size() - start));
    if (layers_.size() > 1) {
      found.fill(false);
      find_in_older<Layout>(group, std::span(found).first(group.size()));
    }
    for (size_t i = 0; i < group.size(); ++i) {
      if (found[i]) continue;
      Layout::visit_bits(geometry, group[i], [&, item = first + start + i](uint64_t bit) {
        regions[bit >> shift].emplace_back(bit, item);
      });
    }
  }
}

void BulkFilter::mark_regions() {
  uint64_t* const words = layers_.back().bits.words();
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
  layers_.back().item_count += static_cast<uint64_t>(std::ranges::count(has_changed_, 1));
}

template <class Layout>
Result<> BulkFilter::add_as(std::span<const ItemHash> hashes) {
  while (!hashes.empty()) {
    const LayerParts& last = layers_.back();
    const uint64_t room = last.capacity - std::min(last.capacity, last.item_count);
    const size_t size = std::min({hashes.size(), batch_size(), size_t{room}});
    if (size >= kBatchItemsMin && last.geometry.bit_count <= Mark::kBitsMax) {
      add_batch<Layout>(hashes.first(size));
      hashes = hashes.subspan(size);
    } else {
      const auto added = add_group<Layout>(hashes);
      if (!added) return added.error();
      hashes = hashes.subspan(*added);
    }
  }
  return {};
}

Result<> BulkFilter::add(std::span<const ItemHash> hashes) {
  if (whole_ != nullptr) return add_to_whole(hashes);
  return with_layout(parameters_.layout, [&]<class Layout>() -> Result<> {
    if constexpr (ListsBits<Layout>) return add_as<Layout>(hashes);
    return {};
  });
}

}  // namespace core::bloom
