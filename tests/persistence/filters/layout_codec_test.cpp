// SPDX-License-Identifier: MIT
#include "persistence/filters/layout_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "core/bloom/layouts.h"
#include "persistence/filters/redisbloom_codec.h"
#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using namespace filter_forms;

TEST(LayoutCodec, LayoutsAreFoundByModuleAndOptions) {
  for (const core::bloom::LayoutRow& layout : core::bloom::kLayoutRows) {
    SCOPED_TRACE(layout.name);
    const LayoutCodec& codec = layout_codec(layout.id);
    EXPECT_EQ(codec.layout, layout.id);
    EXPECT_EQ(layout_codec_of_module(codec.module), &codec);
    EXPECT_EQ(layout_codec_of_chunks(codec.chunk_option), &codec);
    EXPECT_EQ(codec.chunk_option != 0, codec.take_settings != nullptr);
    const auto filter = make(parameters_of(layout.id, 0.01, 10, 2), "item", 100);
    const std::string value = value_of(*filter);
    StreamReader reader(value);
    EXPECT_EQ(module_name(reader.length()), codec.module);
    expect_same_in_every_form(*filter);
  }
}

TEST(LayoutCodec, AllRedisBloomOptionsGiveItsLayout) {
  for (uint64_t options = 0; options <= kRedisBloomOptionsMax; ++options) {
    EXPECT_EQ(layout_codec_of_chunks(options), &layout_codec(RedisBloomLayout::kId)) << options;
  }
  EXPECT_EQ(layout_codec_of_chunks(kRedisBloomOptionsMax + 2), nullptr);
  EXPECT_EQ(layout_codec_of_module("MBbloomCF"), nullptr);
}

}  // namespace
}  // namespace persistence
