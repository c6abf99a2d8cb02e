// SPDX-License-Identifier: MIT
#include "persistence/filters/bloomery_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_builder.h"
#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using namespace filter_forms;

struct DeletableKind {
  core::bloom::LayoutId layout{};
  uint8_t region_bits = 0;
};
constexpr DeletableKind kDeletableKinds[] = {{core::bloom::kFingerprintLayout, 0},
                                             {core::bloom::kRegionLayout, 1},
                                             {core::bloom::kRegionLayout, 4},
                                             {core::bloom::kRegionLayout, 255}};

core::bloom::Removal remove_item(ScalableFilter& filter, std::string_view item) {
  return filter.remove(filter.hasher()(item));
}

// Returns a filter of one or several layers. Every third item was added and then deleted.
FilterPtr churned(DeletableKind kind, uint64_t capacity, int item_count) {
  auto parameters = parameters_of(kind.layout, 0.01, capacity, 2);
  parameters.region_bits = kind.region_bits;
  auto filter = make(parameters, "n", item_count);
  for (int i = 0; i < item_count; i += 3) remove_item(*filter, fmt::format("n:{}", i));
  return filter;
}

TEST(DeletableCodec, FiltersSurviveARoundTrip) {
  for (const DeletableKind kind : kDeletableKinds) {
    for (const int item_count : {0, 30, 400}) {
      const auto filter = churned(kind, 50, item_count);
      expect_same_in_every_form(*filter);
      for (const Packing packing : {Packing::kNever, Packing::kIfSmaller}) {
        const auto loaded = load(payload_of(*filter, packing));
        ASSERT_TRUE(loaded) << loaded.error().message;
        expect_equal(*filter, **loaded);
        EXPECT_EQ((*loaded)->parameters(), filter->parameters());
        const auto twin = filter->clone();
        for (int i = 0; i < 500; ++i) {
          const std::string item = fmt::format("n:{}", i);
          if (i % 3 == 1) {
            ASSERT_EQ(remove_item(*twin, item), remove_item(**loaded, item));
          } else {
            ASSERT_EQ(twin->add(item, kUnlimited), (*loaded)->add(item, kUnlimited));
          }
        }
        expect_equal(*twin, **loaded);
      }
    }
  }
}

TEST(DeletableCodec, BigArraysAreStoredWithoutTheirZeros) {
  for (const DeletableKind kind : kDeletableKinds) {
    const auto filter = churned(kind, 3'000'000, 50);
    const std::string payload = payload_of(*filter, Packing::kNever);
    EXPECT_LT(payload.size(), 20'000U);
    const auto loaded = load(payload);
    ASSERT_TRUE(loaded) << loaded.error().message;
    expect_equal(*filter, **loaded);
  }
}

// A damaged encoding that the decoder accepts gives a usable filter, and all encodings of this
// filter decode to the same filter.
TEST(DeletableCodec, FlippedBitsNeverGiveAnInvalidFilter) {
  std::mt19937_64 random(815);
  for (const DeletableKind kind : kDeletableKinds) {
    const auto filter = churned(kind, 40, 100);
    const std::string value = value_of(*filter);
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string forged = value;
      forged[random() % forged.size()] ^= static_cast<char>(1U << (random() % 8));
      const auto loaded = read_value(forged);
      refused += !loaded;
      if (!loaded) continue;
      ASSERT_EQ(value_of(**read_value(value_of(**loaded))), value_of(**loaded));
      for (int i = 0; i < 20; ++i) {
        const std::string item = fmt::format("n:{}", random() % 120);
        remove_item(**loaded, item);
        (*loaded)->add(item, kMebibyte);
      }
    }
    EXPECT_GT(refused, 300);
  }
}

TEST(DeletableCodec, CountsMustAgreeWithTheBits) {
  for (const DeletableKind kind : kDeletableKinds) {
    // Slots of fingerprints and counts of regions may arrive in a later chunk. So the forged value
    // has too many slots, or too high counts.
    const bool is_regions = kind.layout == core::bloom::kRegionLayout;
    const auto filter = churned(kind, 100, is_regions ? 90 : 60);
    const auto other = churned(kind, 100, is_regions ? 60 : 90);
    // The forged value has the item counts of `filter` and the bits of `other`.
    std::string forged = value_of(*filter);
    const auto array = filter->layer_bits(0).bytes();
    const auto array_of_other = other->layer_bits(0).bytes();
    ASSERT_EQ(array.size(), array_of_other.size());
    const std::string bits(reinterpret_cast<const char*>(array.data()), array.size());
    const size_t at = forged.find(bits);
    ASSERT_NE(at, std::string::npos);
    // The regions layout stores item counts in the last 24 bytes of the array, so these bytes are
    // not replaced.
    const size_t replaced = array.size() - (is_regions ? 24 : 0);
    forged.replace(at, replaced, reinterpret_cast<const char*>(array_of_other.data()), replaced);
    const auto loaded = read_value(forged);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().message, kDamagedBits);
  }
}

TEST(DeletableCodec, PartlyLoadedFilterSurvivesARoundTrip) {
  for (const DeletableKind kind : kDeletableKinds) {
    const auto filter = churned(kind, 100, 90);
    std::string padded;
    const std::string chunk(chunk_at(*filter, 0, padded));
    auto half = decode_chunk_header(encode_chunk_header(*filter), kMebibyte);
    ASSERT_TRUE(half);
    ASSERT_EQ(load_chunk(**half, 0, std::string_view(chunk).substr(0, chunk.size() / 2)),
              ChunkOutcome::kLoaded);
    const std::string value = value_of(**half);
    StreamReader reader(value);
    const uint64_t id = reader.length();
    auto from_snapshot = decode_filter_of(id, reader, kMebibyte);
    ASSERT_TRUE(from_snapshot) << from_snapshot.error().message;
    auto from_dump = read_value(value);
    ASSERT_TRUE(from_dump) << from_dump.error().message;
    // After a restart or a move, BF.LOADCHUNK may load the remaining chunks.
    for (ScalableFilter* const loaded : {from_snapshot->get(), from_dump->get()}) {
      ASSERT_EQ(load_chunk(*loaded, 0, chunk), ChunkOutcome::kLoaded);
      EXPECT_EQ(value_of(*loaded), value_of(*filter));
    }
  }
}

TEST(DeletableCodec, ForgedHeadersAreRejected) {
  for (const DeletableKind kind : kDeletableKinds) {
    const auto filter = churned(kind, 40, 100);
    const std::string header = encode_chunk_header(*filter);
    ASSERT_TRUE(decode_chunk_header(header, kMebibyte));
    for (const double cell_bits : {-1.0, 0.0, 0.5, 65536.0, 1e300, std::nan(""), 300.0}) {
      std::string forged = header;
      overwrite(forged, kBitsPerItemAt, cell_bits);
      EXPECT_FALSE(decode_chunk_header(forged, kMebibyte)) << cell_bits;
    }
    for (size_t size = 0; size < header.size(); ++size) {
      EXPECT_FALSE(decode_chunk_header(std::string_view(header).substr(0, size), kMebibyte));
    }
    std::mt19937_64 random(4711);
    for (int round = 0; round < 2000; ++round) {
      std::string forged = header;
      forged[random() % forged.size()] ^= static_cast<char>(1U << (random() % 8));
      const auto loaded = decode_chunk_header(forged, kMebibyte);
      if (!loaded) continue;
      for (int i = 0; i < 20; ++i) {
        (*loaded)->add(fmt::format("n:{}", i), kMebibyte);
        remove_item(**loaded, fmt::format("n:{}", i));
      }
    }
  }
}

TEST(DeletableCodec, LayersMustHaveEqualRegionSizes) {
  const auto filter = churned({core::bloom::kRegionLayout, 4}, 40, 100);
  ASSERT_GT(filter->layer_count(), 1U);
  std::string header = encode_chunk_header(*filter);
  overwrite(header, kBitsPerItemAt + kLayer, 5);
  EXPECT_FALSE(decode_chunk_header(header, kMebibyte));
}

}  // namespace
}  // namespace persistence
