// SPDX-License-Identifier: MIT
//
// The stored forms of filters for tests: creates and reads values, DUMP payloads and chunk headers.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"
#include "core/result.h"
#include "persistence/filters/bloomery_codec.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/filters/layout_codec.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"
#include "tests/support/load_payload.h"

namespace filter_forms {

using core::bloom::NativeLayout;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;
using filters::make;
using filters::parameters_of;
using persistence::ByteReader;
using persistence::ByteWriter;
using persistence::decode_chunk_header;
using persistence::decode_load_payload;
using persistence::encode_chunk_header;
using persistence::Packing;
using FilterPtr = std::unique_ptr<ScalableFilter>;

inline const core::UnlimitedMemory kUnlimited;
inline const support::Budget kMebibyte(1 << 20);

// Offsets of fields in a chunk header, which has a head of 20 bytes and 53 bytes for each layer.
inline constexpr size_t kHead = 20;
inline constexpr size_t kLayer = 53;
inline constexpr size_t kItemsAt = kHead + 16;
inline constexpr size_t kRateAt = kHead + 24;
inline constexpr size_t kBitsPerItemAt = kHead + 32;
inline constexpr size_t kHashesAt = kHead + 40;

inline std::string value_of(const ScalableFilter& filter, Packing packing = Packing::kNever) {
  std::string bytes;
  ByteWriter writer(bytes);
  persistence::encode_filter(writer, filter, packing);
  return bytes;
}

inline core::Result<FilterPtr> read_value(std::string_view bytes) {
  persistence::StreamReader reader(bytes);
  return persistence::decode_filter(reader, kMebibyte);
}

// Returns the payload that DUMP would return for the filter.
inline std::string payload_of(const ScalableFilter& filter, Packing packing) {
  std::string payload(1, static_cast<char>(persistence::kModuleType));
  payload += value_of(filter, packing);
  persistence::append_dump_footer(payload);
  return payload;
}

inline core::Result<FilterPtr> load(std::string_view payload,
                                    const core::MemoryBudget& budget = kUnlimited) {
  const auto body = persistence::checked_dump_body(payload);
  if (!body) return core::Error{"checksum"};
  persistence::StreamReader reader(*body);
  if (reader.u8() != persistence::kModuleType) return core::Error{"type"};
  return persistence::decode_filter(reader, budget);
}

inline std::string load_payload_of(const ScalableFilter& filter) {
  return persistence::encode_load_payload(filter);
}

// True if big arrays of the layout are stored without their zeros.
inline bool is_stored_as_runs(core::bloom::LayoutId layout) {
  return persistence::layout_codec(layout).encode == persistence::encode_bloomery;
}

inline void expect_equal(const ScalableFilter& a, const ScalableFilter& b) {
  EXPECT_EQ(value_of(a), value_of(b));
}

inline void expect_same_in_every_form(const ScalableFilter& filter) {
  const std::string value = value_of(filter);
  const std::string header = encode_chunk_header(filter);
  const auto from_value = read_value(value);
  ASSERT_TRUE(from_value) << from_value.error().message;
  EXPECT_EQ(value_of(**from_value), value);
  EXPECT_EQ(encode_chunk_header(**from_value), header);
  const auto from_header = decode_chunk_header(header, kMebibyte);
  ASSERT_TRUE(from_header) << from_header.error().message;
  EXPECT_EQ(encode_chunk_header(**from_header), header);
  auto parameters = filter.parameters();
  // The encodings store the rounded capacity, which is the capacity of the first layer.
  if (filter.window() == nullptr) parameters.capacity = filter.layer_info(0).capacity;
  EXPECT_EQ((*from_header)->parameters(), parameters);
  if (filter.layout() != ValkeyBloomLayout::kId) return;
  const auto from_load = decode_load_payload(load_payload_of(filter), kMebibyte);
  ASSERT_TRUE(from_load) << from_load.error().message;
  EXPECT_EQ(value_of(**from_load), value);
}

inline void overwrite(std::string& bytes, size_t offset, double value) {
  std::string text;
  ByteWriter(text).f64(value);
  bytes.replace(offset, text.size(), text);
}

}  // namespace filter_forms
