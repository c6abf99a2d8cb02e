// SPDX-License-Identifier: MIT
//
// LayoutCodec: describes how the filters of one layout are stored. The table of codecs has one row
// for each layout.
//
// Invariants: every layout of core/bloom/layouts.h has one row; module names and chunk options are
// unique.
// Thread safety: constants and pure functions.
// Source: docs/formats.md, "Filters" and "Filters in chunks".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "persistence/filters/filter_builder.h"

namespace persistence {

class FilterWriter;
class ModuleReader;

struct LayoutCodec {
  core::bloom::LayoutId layout{};

  // The module of the layout's values: its name of nine characters, and the versions that can be
  // read.
  std::string_view module{};
  unsigned version_min = 0;
  unsigned version_max = 0;
  // Returns the version of the format in which `encode` writes the filter. If the function is null,
  // the version is always version_max.
  unsigned (*version_of)(const core::bloom::ScalableFilter&) = nullptr;
  void (*encode)(FilterWriter&, const core::bloom::ScalableFilter&) = nullptr;
  // Builds the filter from the output of `encode`. REQUIRES: the builder's layout is set.
  void (*decode)(ModuleReader&, FilterBuilder&, unsigned version) = nullptr;

  // The options field of chunk headers; 0 for RedisBloom's own headers.
  uint64_t chunk_option = 0;
  // Stores the settings from a chunk header in the parameters. Null for RedisBloom's layouts, whose
  // headers have another format. Returns false if no filter of the layout can have these settings.
  bool (*take_settings)(const SettingsClaim&, core::bloom::FilterParameters&) = nullptr;

  // Validates the LayerClaim, which has the values that the input states about a layer. `earlier`
  // are the filter's preceding layers. Returns the layer's geometry; nullopt if no layer of the
  // layout can have these values. If the layout computes each layer's error rate from the filter's
  // error rate, replaces LayerClaim::error_rate by the computed rate. For the first layer, also
  // sets the filter parameters that depend on this layer.
  std::optional<core::bloom::Geometry> (*accept)(LayerClaim&, core::bloom::FilterParameters&,
                                                 std::span<const core::bloom::LayerParts> earlier) =
      nullptr;

  // Returns whether adds and deletions can produce the bits of a layer. The function is null for
  // layouts in which any bits are possible.
  bool (*is_sound)(const core::bloom::ScalableFilter&, size_t index, core::bloom::Loaded) = nullptr;

  // True if the append log's base stores a filter as one BF.LOAD instead of chunks.
  bool has_load_form = false;
};

const LayoutCodec& layout_codec(core::bloom::LayoutId layout);
// Returns the codec of the module; null if no layout uses the module.
const LayoutCodec* layout_codec_of_module(std::string_view module);
const LayoutCodec* layout_codec_of_chunks(uint64_t options);

}  // namespace persistence
