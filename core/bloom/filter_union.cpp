// SPDX-License-Identifier: MIT
#include "core/bloom/filter_union.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
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

bool are_equal_rates(double a, double b) {
  return std::fabs(a - b) <= kRateTolerance * b;
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
  if (!are_equal_rates(first.error_rate, other.error_rate)) {
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

void set_bits(std::span<std::byte> target, std::span<const std::byte> source) {
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= source.size(); at += sizeof(uint64_t)) {
    uint64_t ours;
    uint64_t theirs;
    std::memcpy(&ours, target.data() + at, sizeof(ours));
    std::memcpy(&theirs, source.data() + at, sizeof(theirs));
    ours |= theirs;
    std::memcpy(target.data() + at, &ours, sizeof(ours));
  }
  for (; at < source.size(); ++at) target[at] |= source[at];
}

// ORs `other` into `bits`. Skips the pages of `other` that contain only zeros, so that the kernel
// allocates no memory for the same pages of `bits`.
void add_bits(BitArray& bits, const BitArray& other) {
  other.visit_data(0, other.bytes().size(), [&](uint64_t offset, std::span<const std::byte> piece) {
    const bool has_ones =
        std::ranges::any_of(piece, [](std::byte byte) { return byte != std::byte{0}; });
    if (has_ones) set_bits(bits.bytes().subspan(offset, piece.size()), piece);
  });
}

// Returns the item count of a united layer. `sum` is the total of the item counts of the layers
// that were united, `most` the largest of these counts. The result is `estimate`, limited to the
// range from `most` to `sum`. If `estimate` is far above `sum`, it is returned unchanged.
double items_within(double estimate, uint64_t most, uint64_t sum) {
  const double lower = static_cast<double>(most);
  const double upper = static_cast<double>(sum);
  // Upper bound of the estimate's error. An estimate above `sum` by more than this bound shows that
  // the bits contain items that no count includes.
  const double slack = 3 * std::sqrt(upper) + 1;
  if (estimate > upper + slack) return estimate;
  return std::clamp(estimate, lower, upper);
}

// A layer of the union, and whether its item count is an estimate.
struct UnitedLayer {
  LayerParts parts;
  bool is_estimated = false;
};

class LayerUnion {
 public:
  LayerUnion(UnionInputs inputs, size_t index) : index_(index) {
    for (const ScalableFilter* input : inputs) {
      if (index < input->layer_count()) inputs_.push_back(input);
    }
  }

  // Returns nullopt if the allocation fails.
  std::optional<UnitedLayer> make() const {
    const LayerInfo info = inputs_.front()->layer_info(index_);
    auto bits = inputs_.front()->layer_bits(index_).clone();
    if (!bits) return std::nullopt;
    UnitedLayer layer;
    layer.parts.item_count = info.item_count;
    if (inputs_.size() > 1) {
      for (size_t i = 1; i < inputs_.size(); ++i) add_bits(*bits, inputs_[i]->layer_bits(index_));
      const uint64_t ones = bits->count_ones();
      const auto count = count_of_whole(ones);
      layer.is_estimated = !count;
      layer.parts.item_count = count ? *count : estimate(info.geometry, ones);
    }
    layer.parts.geometry = info.geometry;
    layer.parts.capacity = info.capacity;
    layer.parts.error_rate = info.error_rate;
    layer.parts.bits = std::move(*bits);
    return layer;
  }

 private:
  // Item count of an input that already has all bits of the union; nullopt if no input has all
  // these bits.
  std::optional<uint64_t> count_of_whole(uint64_t ones) const {
    std::optional<uint64_t> most;
    for (const ScalableFilter* input : inputs_) {
      if (input->layer_bits(index_).count_ones() != ones) continue;
      most = std::max(most.value_or(0), input->layer_info(index_).item_count);
    }
    return most;
  }

  uint64_t estimate(const Geometry& geometry, uint64_t ones) const {
    uint64_t most = 0;
    uint64_t sum = 0;
    for (const ScalableFilter* input : inputs_) {
      const uint64_t count = input->layer_info(index_).item_count;
      most = std::max(most, count);
      sum += count;
    }
    const double fill = static_cast<double>(ones) / static_cast<double>(geometry.bit_count);
    const double items = items_within(estimated_items(geometry, fill), most, sum);
    return static_cast<uint64_t>(std::llround(items));
  }

  size_t index_;
  std::vector<const ScalableFilter*> inputs_;
};

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
  for (size_t i = 0; i < longest_of(inputs).layer_count(); ++i) {
    auto layer = LayerUnion(inputs, i).make();
    if (!layer) return Error{"ERR Insufficient memory to merge filters"};
    if (layer->is_estimated && overfill == Overfill::kRefused) {
      if (auto checked = check_fill(layout.id, i, layer->parts); !checked) return checked.error();
    }
    if (!layout.marks_estimates) {
      layer->parts.item_count = std::min(layer->parts.item_count, layer->parts.capacity);
    }
    parameters.item_count_is_estimated |= layer->is_estimated;
    layers.push_back(std::move(layer->parts));
  }
  return ScalableFilter::assemble(parameters, std::move(layers));
}

}  // namespace core::bloom
