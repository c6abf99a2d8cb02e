// SPDX-License-Identifier: MIT
#include "core/bloom/filter_union.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/bloom/layouts.h"

namespace core::bloom {
namespace {

template <class... Values>
Error cannot_merge(fmt::format_string<Values...> reason, Values&&... values) {
  return Error{"ERR cannot merge: " + fmt::format(reason, std::forward<Values>(values)...)};
}

// Compares the settings that determine an item's bits. Errors: one of the filters is deletable or
// has a window, or the settings differ.
Result<> check_settings(const FilterParameters& first, const FilterParameters& other) {
  if (layout_row(first.layout).clears_bits || layout_row(other.layout).clears_bits) {
    return cannot_merge("deletable filters hold items by more than their bits");
  }
  if (first.window.is_set() || other.window.is_set()) {
    return cannot_merge("a filter with a window forgets what the union would keep");
  }
  if (first.layout != other.layout) {
    return cannot_merge("the layouts differ ({} and {})", layout_name(first.layout),
                        layout_name(other.layout));
  }
  if (!is_close(first.error_rate, other.error_rate)) {
    return cannot_merge("the error rates differ ({} and {})", first.error_rate, other.error_rate);
  }
  if (first.seed != other.seed) return cannot_merge("the seeds differ");
  if (first.hashes_32_bits != other.hashes_32_bits) {
    return cannot_merge("one has hashes of 32 bits, the other of 64");
  }
  return {};
}

Result<> check_layer(size_t index, const LayerInfo& first, const LayerInfo& other) {
  if (first.capacity != other.capacity) {
    return cannot_merge("the capacities of layer {} differ ({} and {})", index, first.capacity,
                        other.capacity);
  }
  const Geometry& one = first.geometry;
  const Geometry& two = other.geometry;
  if (one != two) {
    return cannot_merge("the shapes of layer {} differ ({} bits with {} hashes and {} with {})",
                        index, one.bit_count, one.hash_count, two.bit_count, two.hash_count);
  }
  return {};
}

// If `other` has more layers than `first`, checks that both filters have the same growth settings.
// The union then gets further layers, which `first` would have created with its own settings.
Result<> check_growth(const ScalableFilter& first, const ScalableFilter& other) {
  if (other.layer_count() <= first.layer_count()) return {};
  const FilterParameters one = first.parameters();
  const FilterParameters two = other.parameters();
  if (one.expansion != two.expansion) {
    return cannot_merge("the expansions differ ({} and {})", one.expansion, two.expansion);
  }
  if (tightening_ratio_of(one) != tightening_ratio_of(two)) {
    return cannot_merge("the tightening ratios differ ({} and {})", tightening_ratio_of(one),
                        tightening_ratio_of(two));
  }
  return {};
}

Result<> check_pair(const ScalableFilter& first, const ScalableFilter& other) {
  if (auto checked = check_settings(first.parameters(), other.parameters()); !checked) {
    return checked;
  }
  const size_t common = std::min(first.layer_count(), other.layer_count());
  for (size_t i = 0; i < common; ++i) {
    if (auto checked = check_layer(i, first.layer_info(i), other.layer_info(i)); !checked) {
      return checked;
    }
  }
  return check_growth(first, other);
}

// Returns the filter with the most layers; of several such filters, the first. Each layer of every
// other filter has a counterpart in this filter.
const ScalableFilter& longest_of(UnionInputs inputs) {
  return **std::ranges::max_element(inputs, {}, &ScalableFilter::layer_count);
}

Result<> check_inputs(UnionInputs inputs) {
  const ScalableFilter& longest = longest_of(inputs);
  for (const ScalableFilter* input : inputs) {
    if (auto checked = check_pair(*inputs.front(), *input); !checked) return checked;
    // Compares each input with the longest filter, because the first filter may have fewer layers.
    if (auto checked = check_pair(longest, *input); !checked) return checked;
  }
  return {};
}

// ORs `other` into `bits`. Skips the pages of `other` that contain only zeros, so that the kernel
// allocates no memory for the same pages of `bits`.
void add_bits(BitArray& bits, const BitArray& other) {
  other.visit_data(0, other.bytes().size(), [&](uint64_t offset, std::span<const std::byte> piece) {
    const bool has_ones =
        std::ranges::any_of(piece, [](std::byte byte) { return byte != std::byte{0}; });
    if (!has_ones) return;
    const auto target = bits.bytes().subspan(offset, piece.size());
    for (size_t i = 0; i < piece.size(); ++i) target[i] |= piece[i];
  });
}

// Estimates the item count of a united layer with `ones` set bits. `sum` is the total of the item
// counts of the layers that were united, `most` the largest of these counts. The result is limited
// to the range from `most` to `sum`, unless the estimate is far above `sum`.
uint64_t estimated_count(const Geometry& geometry, uint64_t ones, uint64_t most, uint64_t sum) {
  const double fill = static_cast<double>(ones) / static_cast<double>(geometry.bit_count);
  const double estimate = estimated_items(geometry, fill);
  const double lower = static_cast<double>(most);
  const double upper = static_cast<double>(sum);
  // Upper bound of the estimate's error. An estimate above `sum` by more than this bound shows that
  // the bits contain items that no count includes.
  const double slack = 3 * std::sqrt(upper) + 1;
  const bool is_far = estimate > upper + slack;
  const double count = is_far ? estimate : std::clamp(estimate, lower, upper);
  // kMaxItemCount is rounded to 2^63 as a double.
  return count >= 0x1p63 ? kMaxItemCount : static_cast<uint64_t>(std::llround(count));
}

// A layer of the union, and whether its item count is an estimate.
struct UnitedLayer {
  LayerParts parts;
  bool is_estimated = false;
};

// Returns layer `index` of the union; nullopt if the allocation fails.
std::optional<UnitedLayer> unite_layer(UnionInputs inputs, size_t index) {
  std::vector<const ScalableFilter*> owners;  // inputs that have the layer
  for (const ScalableFilter* input : inputs) {
    if (index < input->layer_count()) owners.push_back(input);
  }
  const LayerInfo info = owners.front()->layer_info(index);
  auto bits = owners.front()->layer_bits(index).clone();
  if (!bits) return std::nullopt;
  uint64_t item_count = info.item_count;
  bool is_estimated = false;
  if (owners.size() > 1) {
    for (size_t i = 1; i < owners.size(); ++i) add_bits(*bits, owners[i]->layer_bits(index));
    const uint64_t ones = bits->count_ones();
    uint64_t most = 0;
    uint64_t sum = 0;
    std::optional<uint64_t> of_whole;  // item count of an input that has all bits of the union
    for (const ScalableFilter* owner : owners) {
      const uint64_t count = owner->layer_info(index).item_count;
      most = std::max(most, count);
      sum = add_counts(sum, count);
      const bool is_whole = owner->layer_bits(index).count_ones() == ones;
      if (is_whole) of_whole = std::max(of_whole.value_or(0), count);
    }
    is_estimated = !of_whole;
    item_count = of_whole ? *of_whole : estimated_count(info.geometry, ones, most, sum);
  }
  return UnitedLayer{{info.geometry, info.capacity, item_count, info.error_rate, std::move(*bits)},
                     is_estimated};
}

double predicted_error(LayoutId layout, const LayerParts& layer) {
  return with_layout(layout, [&]<class Layout>() {
    return Layout::predicted_error(layer.geometry, layer.item_count);
  });
}

Result<> check_fill(LayoutId layout, size_t index, const LayerParts& layer) {
  if (layer.item_count <= layer.capacity) return {};
  const double predicted = predicted_error(layout, layer);
  if (predicted <= layer.error_rate) return {};
  return Error{fmt::format(
      "ERR merging would break the error rate: layer {} of capacity {} would hold about {} items "
      "and err at {:.2g} instead of {:.2g} (FORCE merges all the same)",
      index, layer.capacity, layer.item_count, predicted, layer.error_rate)};
}

uint64_t bytes_of(const ScalableFilter& first, const ScalableFilter& longest) {
  uint64_t bits_bytes = 0;
  for (size_t i = 0; i < longest.layer_count(); ++i)
    bits_bytes += longest.layer_bits(i).bytes().size();
  return accounted_bytes(first.layout(), longest.layer_count(), bits_bytes);
}

}  // namespace

Result<uint64_t> union_bytes(UnionInputs inputs) {
  if (auto checked = check_inputs(inputs); !checked) return checked.error();
  return bytes_of(*inputs.front(), longest_of(inputs));
}

Result<std::unique_ptr<ScalableFilter>> unite(UnionInputs inputs, Overfill overfill) {
  if (auto checked = check_inputs(inputs); !checked) return checked.error();
  FilterParameters parameters = inputs.front()->parameters();
  const LayoutRow& layout = layout_row(parameters.layout);
  const auto is_estimated = [](const ScalableFilter* input) {
    return input->parameters().item_count_is_estimated;
  };
  parameters.item_count_is_estimated = std::ranges::any_of(inputs, is_estimated);
  std::vector<LayerParts> layers;
  const size_t layer_count = longest_of(inputs).layer_count();
  for (size_t i = 0; i < layer_count; ++i) {
    auto layer = unite_layer(inputs, i);
    if (!layer) return Error{"ERR Insufficient memory to merge filters"};
    if (layer->is_estimated && overfill == Overfill::kRefused) {
      if (auto checked = check_fill(layout.id, i, layer->parts); !checked) return checked.error();
    }
    if (!layout.marks_estimates) {
      layer->parts.item_count = std::min(layer->parts.item_count, layer->parts.capacity);
    }
    // unite_layer() counts fewer items if an input with missing chunks counts items without bits.
    if (layout.fills_older_layers && i + 1 < layer_count) {
      layer->parts.item_count = layer->parts.capacity;
    }
    parameters.item_count_is_estimated |= layer->is_estimated;
    layers.push_back(std::move(layer->parts));
  }
  return ScalableFilter::assemble(parameters, std::move(layers));
}

}  // namespace core::bloom
