// SPDX-License-Identifier: MIT
//
// FilterFigures: statistics of a filter and of its layers, for BF.STATS, BF.SCAN and the
// dashboard.
// Invariants: the statistics are a copy, which does not change when the filter changes.
// Thread safety: each object belongs to one thread. Functions that read a filter need the shared
// lock of the filter's key.
// Source: docs/bloom_math.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/bloom/parameters.h"
#include "core/bloom/scalable_filter.h"

namespace server {

struct GenerationFigures {
  int64_t start = 0;
  uint64_t layer_count = 0;
  uint64_t item_count = 0;
};

struct LayerFigures {
  core::bloom::LayerInfo info;
  double predicted_error_rate = 0;
  double fill_ratio = 0;
  double items = 0;       // number of items, estimated from the bits
  double flag_share = 0;  // fraction of flags that are set; only in deletable filters
  // Fraction of items that deletion cannot remove; only in deletable filters, and only after
  // FilterFigures::compute_residues().
  double residue = 0;
};

// Statistics of a whole filter. They are copied under the lock, so that the reply can be written
// without the lock.
struct FilterFigures {
  core::bloom::FilterParameters parameters;
  uint64_t size_bytes = 0;
  uint64_t item_count = 0;
  uint64_t capacity = 0;
  double predicted_error_rate = 0;
  std::vector<LayerFigures> layers;
  // One element per generation; empty for a filter without a window.
  std::vector<GenerationFigures> generations;
  std::optional<uint64_t> items_left;
  // Size of the layer that growing would add; nullopt if the filter cannot grow.
  std::optional<uint64_t> next_layer_bytes;

  // Returns by how many items the generations exceed their capacities, summed over all generations.
  uint64_t items_over() const {
    const uint64_t room = generation_parameters(parameters).capacity;
    uint64_t sum = 0;
    for (const GenerationFigures& generation : generations) {
      if (generation.item_count <= room) continue;
      sum = core::bloom::add_counts(sum, generation.item_count - room);
    }
    return sum;
  }
  uint64_t bit_count() const {
    uint64_t sum = 0;
    for (const LayerFigures& layer : layers) sum += layer.info.geometry.bit_count;
    return sum;
  }
  double fill_ratio() const {
    double ones = 0;
    for (const LayerFigures& layer : layers) {
      ones += layer.fill_ratio * static_cast<double>(layer.info.geometry.bit_count);
    }
    return ones / static_cast<double>(bit_count());
  }
  double estimated_cardinality() const {
    double sum = 0;
    for (const LayerFigures& layer : layers) sum += layer.items;
    return sum;
  }
  bool is_deletable() const { return core::bloom::layout_row(parameters.layout).clears_bits; }
  // Computes the residues of all layers. Takes about a millisecond per layer, so it must be called
  // without the lock.
  void compute_residues() {
    for (LayerFigures& layer : layers) {
      layer.residue =
          core::bloom::residue_of(parameters.layout, layer.info.geometry, layer.flag_share);
    }
  }
  // Returns the fraction of all items that deletion cannot remove. REQUIRES: compute_residues().
  double residue() const {
    double sum = 0;
    for (const LayerFigures& layer : layers) {
      sum += layer.residue * static_cast<double>(layer.info.item_count);
    }
    return item_count == 0 ? 0 : sum / static_cast<double>(item_count);
  }
};

// Returns the statistics that need no bits: all but those of layers and generations.
FilterFigures summary_of(const core::bloom::ScalableFilter& filter);

// Computes statistics from the filter's bits. If the layout has no deletion, reads all bits of a
// filter of at most read_bytes, and about read_bytes of a bigger filter. If the layout has
// deletion, core::bloom::array_figures() computes the statistics, and read_bytes has no effect.
FilterFigures figures_of(const core::bloom::ScalableFilter& filter, uint64_t read_bytes);

// Returns how many items fit before a layer is added, or before a filter that does not grow is
// full. Returns nullopt for a filter with a window.
std::optional<uint64_t> items_left_in(const core::bloom::ScalableFilter& filter);

// Returns the fraction of bits that are set (of cells in use for `fingerprints`), with layers
// weighted by size. Reads the same bits as figures_of().
double fill_ratio_of(const core::bloom::ScalableFilter& filter, uint64_t read_bytes);

}  // namespace server
