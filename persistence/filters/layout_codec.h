// SPDX-License-Identifier: MIT
//
// LayoutCodec: how the filters of one layout are stored, one row for each layout.
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

  // The module value: its module's nine characters and the versions that are read.
  std::string_view module{};
  unsigned version_min = 0;
  unsigned version_max = 0;
  // The version that a filter is written as; version_max where there is no choice.
  unsigned (*version_of)(const core::bloom::ScalableFilter&) = nullptr;
  void (*encode)(FilterWriter&, const core::bloom::ScalableFilter&) = nullptr;
  // Builds what `encode` wrote; the builder's layout is set.
  void (*decode)(ModuleReader&, FilterBuilder&, unsigned version) = nullptr;

  // The options field of chunk headers; 0 for RedisBloom's own headers.
  uint64_t chunk_option = 0;
  // False when no filter of the layout is so. Of the headers that are not RedisBloom's.
  bool (*take_settings)(const SettingsClaim&, core::bloom::FilterParameters&) = nullptr;

  // The shape of a layer that bytes claim, which follows `earlier` ones; nothing when the layout
  // has no such layer. Puts what the encoder will write into the claim, where forms differ, and
  // into the parameters what follows from the first layer.
  std::optional<core::bloom::Geometry> (*accept)(LayerClaim&, core::bloom::FilterParameters&,
                                                 std::span<const core::bloom::LayerParts> earlier) =
      nullptr;

  // Whether a layer's bits are such as adds and deletions leave them; null where any bits are.
  // False while a filter is being loaded in chunks.
  bool (*is_sound)(const core::bloom::ScalableFilter&, size_t index) = nullptr;

  // The append log's base holds the filter as one BF.LOAD, else as chunks.
  bool has_load_form = false;
};

const LayoutCodec& layout_codec(core::bloom::LayoutId layout);
// Null when no layout has it.
const LayoutCodec* layout_codec_of_module(std::string_view module);
const LayoutCodec* layout_codec_of_chunks(uint64_t options);

}  // namespace persistence
