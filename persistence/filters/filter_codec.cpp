// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_codec.h"

#include <fmt/format.h>

#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_writer.h"
#include "persistence/filters/layout_codec.h"

namespace persistence {

using core::bloom::ScalableFilter;
using FilterResult = core::Result<std::unique_ptr<ScalableFilter>>;

bool is_sound(const ScalableFilter& filter, core::bloom::Loaded loaded) {
  const LayoutCodec& codec = layout_codec(filter.layout());
  if (codec.is_sound == nullptr) return true;
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    if (!codec.is_sound(filter, i, loaded)) return false;
  }
  return true;
}

void encode_filter(ByteWriter& writer, const ScalableFilter& filter, Packing packing) {
  const LayoutCodec& codec = layout_codec(filter.layout());
  const bool has_choice = codec.version_of != nullptr;
  const unsigned version = has_choice ? codec.version_of(filter) : codec.version_max;
  FilterWriter out(writer, module_id(codec.module, version), packing);
  codec.encode(out, filter);
  out.end();
}

bool is_filter_module(uint64_t id) {
  return layout_codec_of_module(module_name(id)) != nullptr;
}

FilterResult decode_filter(StreamReader& reader, const core::MemoryBudget& budget) {
  const uint64_t id = reader.length();
  if (!reader.ok()) return core::Error{std::string(kDamagedFilter)};
  auto filter = decode_filter_of(id, reader, budget);
  // Only some chunks of a filter may be loaded when it is dumped or moved.
  if (filter && !is_sound(**filter, core::bloom::Loaded::kPartly)) {
    return core::Error{std::string(kDamagedBits)};
  }
  return filter;
}

FilterResult decode_filter_of(uint64_t id, StreamReader& reader, const core::MemoryBudget& budget) {
  const std::string name = module_name(id);
  const unsigned version = module_version(id);
  const LayoutCodec* const codec = layout_codec_of_module(name);
  if (codec == nullptr || version < codec->version_min || version > codec->version_max) {
    return core::Error{fmt::format("ERR unknown module value '{}' version {}", name, version)};
  }
  ModuleReader in(reader);
  FilterBuilder builder(budget);
  builder.parameters.layout = codec->layout;
  codec->decode(in, builder, version);
  // If the builder has failed, some fields are unread, so the end mark cannot be read.
  if (builder.ok()) in.end();
  if (!in.ok()) builder.fail(kDamagedFilter);
  return builder.finish();
}

}  // namespace persistence
