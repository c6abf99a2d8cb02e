// SPDX-License-Identifier: MIT
#include "persistence/filters/layout_codec.h"

#include <algorithm>
#include <cassert>

#include "core/bloom/layouts.h"
#include "persistence/filters/bloomery_codec.h"
#include "persistence/filters/redisbloom_codec.h"
#include "persistence/filters/valkeybloom_codec.h"

namespace persistence {
namespace {

using core::bloom::LayoutId;

// Returns the row of one of Bloomery's own layouts.
constexpr LayoutCodec own_row(const core::bloom::LayoutRow& layout, std::string_view module,
                              uint64_t chunk_option) {
  LayoutCodec row{.layout = layout.id,
                  .module = module,
                  .version_min = kBloomeryVersion,
                  .version_max = kBloomeryVersionWithFeatures,
                  .version_of = bloomery_version_of,
                  .encode = encode_bloomery,
                  .decode = decode_bloomery,
                  .chunk_option = chunk_option,
                  .take_settings = take_bloomery_settings,
                  .accept = accept_bloomery};
  if (layout.clears_bits) {
    row.version_min = row.version_max = kDeletableVersion;
    row.version_of = nullptr;
    row.is_sound = is_sound_deletable;
  }
  return row;
}

constexpr LayoutCodec kRows[] = {
    own_row(core::bloom::NativeLayout::kRow, "bloomery-", 16),
    own_row(core::bloom::LaneLayout::kRow, "bloomeryL", 256),
    own_row(core::bloom::FingerprintLayout::kRow, "bloomeryF", 64),
    own_row(core::bloom::RegionLayout::kRow, "bloomeryR", 128),
    {.layout = core::bloom::RedisBloomLayout::kId,
     .module = "MBbloom--",
     .version_max = 4,
     .encode = encode_redisbloom,
     .decode = decode_redisbloom,
     .accept = accept_redisbloom},
    // The oldest version is 1, because version 0 was never released and orders its bits
    // differently.
    {.layout = core::bloom::ValkeyBloomLayout::kId,
     .module = "bloomfltr",
     .version_min = 1,
     .version_max = 1,
     .encode = encode_valkeybloom,
     .decode = decode_valkeybloom,
     .chunk_option = 32,
     .take_settings = take_valkeybloom_settings,
     .accept = accept_valkeybloom,
     .has_load_form = true},
};

constexpr bool has_one_row(LayoutId layout) {
  return std::ranges::count(kRows, layout, &LayoutCodec::layout) == 1;
}
static_assert(std::ranges::all_of(core::bloom::kLayoutRows, has_one_row,
                                  &core::bloom::LayoutRow::id),
              "each layout has one row here");

constexpr bool are_rows_sound() {
  for (const LayoutCodec& row : kRows) {
    if (row.chunk_option != 0 && row.chunk_option <= kRedisBloomOptionsMax) return false;
    if (std::ranges::count(kRows, row.chunk_option, &LayoutCodec::chunk_option) != 1) return false;
    if (std::ranges::count(kRows, row.module, &LayoutCodec::module) != 1) return false;
  }
  return true;
}
static_assert(are_rows_sound(), "modules and chunk options are unique");

template <class Value>
const LayoutCodec* row_where(Value LayoutCodec::*member, const Value& value) {
  const auto* const row = std::ranges::find(kRows, value, member);
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

const LayoutCodec& layout_codec(LayoutId layout) {
  const LayoutCodec* const row = row_where(&LayoutCodec::layout, layout);
  assert(row != nullptr);
  return *row;
}

const LayoutCodec* layout_codec_of_module(std::string_view module) {
  return row_where(&LayoutCodec::module, module);
}

const LayoutCodec* layout_codec_of_chunks(uint64_t options) {
  return row_where(&LayoutCodec::chunk_option,
                   options <= kRedisBloomOptionsMax ? uint64_t{0} : options);
}

}  // namespace persistence
