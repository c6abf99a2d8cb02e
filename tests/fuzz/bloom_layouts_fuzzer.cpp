// SPDX-License-Identifier: MIT
//
// Aborts if two equivalent operations on Bloom filters give different results. It compares portable
// kernels with SIMD kernels, filters with their clones, and batches of additions or deletions with
// single ones.
//
// The first byte of an input chooses the layout, whether the filter scales and whether it has a
// window. The second chooses the capacity, the third the error rate. Each further byte is an item
// or, from 0xF0 on, the end of a batch.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/layer.h"
#include "core/bloom/layouts.h"
#include "core/bloom/line_kernels.h"
#include "core/bloom/line_walk.h"
#include "core/bloom/scalable_filter.h"

namespace {

using namespace core::bloom;
const core::UnlimitedMemory kBudget;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

bool same_bits(const ScalableFilter& left, const ScalableFilter& right) {
  if (left.layer_count() != right.layer_count()) return false;
  for (size_t i = 0; i < left.layer_count(); ++i) {
    if (left.layer_info(i).item_count != right.layer_info(i).item_count) return false;
    if (!std::ranges::equal(left.layer_bits(i).bytes(), right.layer_bits(i).bytes())) return false;
  }
  return true;
}

// Each byte of an input gives an item: the byte, and the bytes before it in its group of four. So
// items may repeat, but enough items differ to fill layers.
std::vector<ItemHash> hashes_of(std::span<const uint8_t> bytes, const ItemHasher& hash) {
  std::vector<ItemHash> hashes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::string item(bytes.begin() + ptrdiff_t(i & ~size_t{3}),
                           bytes.begin() + ptrdiff_t(i) + 1);
    hashes.push_back(hash(item));
  }
  return hashes;
}

void compare_batch(ScalableFilter& batched, ScalableFilter& single,
                   std::span<const ItemHash> hashes) {
  const auto found = std::make_unique<bool[]>(hashes.size());
  const std::span answers(found.get(), hashes.size());
  std::vector<AddOutcome> outcomes(hashes.size());
  batched.may_contain_many(hashes, answers);
  for (size_t i = 0; i < hashes.size(); ++i) {
    require(answers[i] == single.may_contain(hashes[i]), "batched lookup differs");
  }
  const size_t done = batched.add_many(hashes, outcomes, kBudget);
  require(done == hashes.size() || outcomes[done - 1] == AddOutcome::kFull, "batch cut short");
  for (size_t i = 0; i < done; ++i) {
    require(outcomes[i] == single.add(hashes[i], kBudget), "batched add differs");
    // A filter with a window may have forgotten the item already.
    const bool is_kept =
        (outcomes[i] == AddOutcome::kAdded || outcomes[i] == AddOutcome::kPresent) &&
        batched.window() == nullptr;
    if (is_kept) require(batched.may_contain(hashes[i]), "item lost");
  }
  require(same_bits(batched, single), "batched adds leave other bits");
}

// Also removes items that were never added. Lookups may then miss items, but both filters must
// agree.
void compare_removals(ScalableFilter& batched, ScalableFilter& single,
                      std::span<const ItemHash> hashes) {
  const uint64_t before = batched.item_count();
  std::vector<Removal> outcomes(hashes.size());
  batched.remove_many(hashes, outcomes);
  uint64_t gone = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    require(outcomes[i] == single.remove(hashes[i]), "batched deletion differs");
    gone += outcomes[i] == Removal::kGone;
  }
  require(batched.item_count() + gone == before, "deletions are counted wrongly");
  require(same_bits(batched, single), "batched deletions leave other bits");
}

void compare_kernels(const Geometry& geometry, std::span<const ItemHash> hashes,
                     const LineKernels& portable, const LineKernels* simd) {
  Layer left_layer(*BitArray::allocate(geometry.bit_count), geometry, 1, 0);
  Layer right_layer(*BitArray::allocate(geometry.bit_count), geometry, 1, 0);
  BitArray& left = left_layer.bits();
  BitArray& right = right_layer.bits();
  for (size_t start = 0; start < hashes.size(); start += kGroupItems) {
    const auto group = hashes.subspan(start, std::min(kGroupItems, hashes.size() - start));
    std::array<bool, kGroupItems> left_found{}, right_found{};
    // Looks the items up in a list that contains the array twice, and then in the array alone. The
    // kernels use one loop for several arrays, and another loop for a single array.
    const std::array left_views{ArrayView{left.words(), geometry},
                                ArrayView{left.words(), geometry}};
    const std::array right_views{ArrayView{right.words(), geometry},
                                 ArrayView{right.words(), geometry}};
    for (const size_t count : {2, 1}) {
      left_found.fill(false);
      right_found.fill(false);
      portable.check_group(std::span(left_views).first(count), group, left_found);
      simd->check_group(std::span(right_views).first(count), group, right_found);
      require(left_found == right_found, "SIMD group differs");
    }
    // For every second group, one call of mark_group() sets the bits of all items. For the other
    // groups, mark() sets the bits of one item after another.
    if (start / kGroupItems % 2 == 1) {
      require(portable.mark_group(left.words(), geometry, group, left_found) ==
                  simd->mark_group(right.words(), geometry, group, right_found),
              "SIMD counts other items");
      require(left_found == right_found, "SIMD marks other items");
      continue;
    }
    for (const ItemHash& hash : group) {
      require(
          portable.check_any({&left_layer, 1}, hash) == simd->check_any({&right_layer, 1}, hash),
          "SIMD check of several layers differs");
      require(portable.check(left.words(), geometry, hash) ==
                  simd->check(right.words(), geometry, hash),
              "SIMD check differs");
      require(
          portable.mark(left.words(), geometry, hash) == simd->mark(right.words(), geometry, hash),
          "SIMD mark differs");
    }
  }
  require(std::ranges::equal(left.bytes(), right.bytes()), "SIMD leaves other bits");
}

}  // namespace

namespace {

// REQUIRES: `data` has at least three bytes.
FilterParameters parameters_of(const uint8_t* data) {
  FilterParameters parameters;
  const LayoutRow& layout = kLayoutRows[data[0] % kLayoutRows.size()];
  parameters.layout = layout.id;
  parameters.expansion = (data[0] & 0x80) != 0 ? 0 : 1 + (data[0] >> 4 & 3);
  parameters.capacity = 1 + data[1];
  parameters.error_rate = std::exp2(-(1 + data[2] % 60));
  if (layout.takes_region_bits) parameters.region_bits = 1 + data[2] % 16;
  if (layout.takes_window && (data[0] & 0x40) != 0) {
    parameters.window.unit = WindowUnit::kItems;
    parameters.window.generations = 1 + data[2] % 8;
    parameters.window.length = parameters.window.generations + data[1];
    parameters.window.refreshes = data[2] % 2 != 0;
  }
  return parameters;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const FilterParameters parameters = parameters_of(data);
  auto created = ScalableFilter::create(parameters, kBudget);
  if (!created) return 0;  // the layout cannot keep the chosen error rate
  const auto batched = std::move(*created);
  const auto single = ScalableFilter::create(parameters, kBudget).value();

  const std::span<const uint8_t> bytes(data + 3, std::min<size_t>(size - 3, 4096));
  const std::vector<ItemHash> hashes = hashes_of(bytes, batched->hasher());
  size_t start = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] < 0xF0 && i + 1 < bytes.size()) continue;
    compare_batch(*batched, *single, std::span(hashes).subspan(start, i + 1 - start));
    start = i + 1;
  }
  const auto copy = batched->clone();
  require(copy != nullptr && same_bits(*copy, *batched), "clone differs");
  for (const ItemHash& hash : hashes) {
    require(copy->may_contain(hash) == batched->may_contain(hash), "clone answers differently");
  }
  if (layout_row(parameters.layout).clears_bits) {
    compare_removals(*batched, *single, std::span(hashes).first(hashes.size() / 2));
    compare_batch(*batched, *single, hashes);
    compare_removals(*batched, *single, hashes);
  }
  if (parameters.layout == NativeLayout::kId) {
    if (const LineKernels* simd = avx2_line_kernels()) {
      compare_kernels(batched->layer_info(0).geometry, hashes, portable_line_kernels(), simd);
    }
  }
  if (parameters.layout == LaneLayout::kId) {
    for (const LineKernels* kernels : supported_lane_kernels().subspan(1)) {
      compare_kernels(batched->layer_info(0).geometry, hashes, portable_lane_kernels(), kernels);
    }
  }
  return 0;
}
