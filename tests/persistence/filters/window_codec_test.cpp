// SPDX-License-Identifier: MIT
#include "persistence/filters/window_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/bloom/window.h"
#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using core::bloom::FilterParameters;
using core::bloom::ScalableFilter;
using core::bloom::WindowSettings;
using core::bloom::WindowUnit;
using filter_forms::FilterPtr;

constexpr int64_t kWindowBegin = 1'700'000'000'000;

// Returns a filter with a window after several rotations. Its generations have one or more layers,
// and one older generation is missing.
FilterPtr make_forgetful(const WindowSettings& window, uint32_t expansion = 2) {
  FilterParameters parameters;
  parameters.capacity = 50;
  parameters.expansion = expansion;
  parameters.window = window;
  auto filter = *ScalableFilter::create(parameters, filter_forms::kUnlimited, kWindowBegin);
  int number = 0;
  for (const int64_t after_ms : {0, 2600, 2700, 8000, 11'000}) {
    if (const auto rotation = filter->window()->rotation_due(kWindowBegin + after_ms))
      filter->rotate(*rotation, filter_forms::kUnlimited);
    for (int i = 0; i < 20; ++i)
      filter->add(fmt::format("item:{}", ++number), filter_forms::kUnlimited);
  }
  return filter;
}

std::vector<FilterPtr> forgetful_filters() {
  std::vector<FilterPtr> filters;
  filters.push_back(make_forgetful({10'000, WindowUnit::kMilliseconds, 4, false}));
  filters.push_back(make_forgetful({10'000, WindowUnit::kMilliseconds, 7, true}));
  filters.push_back(make_forgetful({1'000, WindowUnit::kMilliseconds, 64, false}));
  filters.push_back(make_forgetful({10'000, WindowUnit::kMilliseconds, 1, false}, 0));
  filters.push_back(make_forgetful({60, WindowUnit::kItems, 4, false}));
  filters.push_back(make_forgetful({7, WindowUnit::kItems, 3, true}));
  return filters;
}

void expect_same_window(const ScalableFilter& a, const ScalableFilter& b) {
  ASSERT_NE(b.window(), nullptr);
  EXPECT_EQ(a.window()->settings(), b.window()->settings());
  EXPECT_EQ(a.window()->newest(), b.window()->newest());
  EXPECT_TRUE(std::ranges::equal(a.window()->generations(), b.window()->generations()));
  EXPECT_EQ(a.parameters(), b.parameters());
}

// Returns the header after `value` has replaced one of its 64-bit numbers. `from_end` counts these
// numbers from the end of the header: 1 is the last number.
std::string forged(std::string header, size_t from_end, uint64_t value) {
  std::memcpy(header.data() + header.size() - 8 * from_end, &value, sizeof value);
  return header;
}

TEST(WindowCodec, WindowsAreEqualInEveryForm) {
  for (const FilterPtr& filter : forgetful_filters()) {
    filter_forms::expect_same_in_every_form(*filter);
    const auto loaded = filter_forms::read_value(filter_forms::value_of(*filter));
    ASSERT_TRUE(loaded) << loaded.error().message;
    expect_same_window(*filter, **loaded);
    const auto from_header = filter_forms::decode_chunk_header(
        filter_forms::encode_chunk_header(*filter), filter_forms::kUnlimited);
    ASSERT_TRUE(from_header);
    expect_same_window(*filter, **from_header);
  }
}

TEST(WindowCodec, LoadedWindowsRotateAlike) {
  for (const FilterPtr& filter : forgetful_filters()) {
    const auto loaded = filter_forms::read_value(filter_forms::value_of(*filter));
    ASSERT_TRUE(loaded);
    for (ScalableFilter* each : {filter.get(), loaded->get()}) {
      if (const auto rotation = each->window()->rotation_due(kWindowBegin + 19'000))
        each->rotate(*rotation, filter_forms::kUnlimited);
      for (int i = 0; i < 100; ++i) each->add(fmt::format("later:{}", i), filter_forms::kUnlimited);
    }
    EXPECT_EQ(filter_forms::value_of(*filter), filter_forms::value_of(**loaded));
  }
}

TEST(WindowCodec, FiltersWithoutAWindowKeepTheirForm) {
  const auto plain = filters::make(
      filter_forms::parameters_of(filter_forms::NativeLayout::kId, 0.01, 100, 2), "item", 50);
  EXPECT_EQ(bloomery_version_of(*plain), kBloomeryVersion);
  EXPECT_EQ(bloomery_version_of(*forgetful_filters()[0]), kBloomeryVersionWithFeatures);
}

TEST(WindowCodec, ForgedNumbersAreRejectedOrConsistent) {
  constexpr uint64_t kValues[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  5,
                                  64,
                                  65,
                                  66,
                                  999,
                                  uint64_t{1} << 32,
                                  uint64_t{1} << 48,
                                  uint64_t{1} << 52,
                                  (uint64_t{1} << 52) + 1,
                                  uint64_t{1} << 63,
                                  ~uint64_t{0}};
  int refused = 0;
  for (const FilterPtr& filter : forgetful_filters()) {
    const std::string header = filter_forms::encode_chunk_header(*filter);
    for (size_t from_end = 1; from_end <= encode_window(*filter).size(); ++from_end) {
      for (const uint64_t value : kValues) {
        const std::string bytes = forged(header, from_end, value);
        const auto loaded = filter_forms::decode_chunk_header(bytes, filter_forms::kUnlimited);
        if (!loaded) {
          ++refused;
          continue;
        }
        ASSERT_EQ(filter_forms::encode_chunk_header(**loaded), bytes);
        filter_forms::expect_same_in_every_form(**loaded);
        // A filter that the decoder accepts can be used: it accepts items and rotates its
        // generations.
        for (int i = 0; i < 10; ++i) (*loaded)->add(fmt::format("{}", i), filter_forms::kUnlimited);
        if (const auto rotation = (*loaded)->window()->rotation_due(kWindowBegin))
          (*loaded)->rotate(*rotation, filter_forms::kUnlimited);
        filter_forms::expect_same_in_every_form(**loaded);
      }
    }
  }
  EXPECT_GT(refused, 300);
}

// A rotation does not check the memory budget. So the decoder must reject a capacity that would
// make the next generation larger than the existing generations.
TEST(WindowCodec, CapacityMustBeThatOfTheGenerations) {
  const FilterPtr filter = make_forgetful({10'000, WindowUnit::kMilliseconds, 4, false});
  const std::string header = filter_forms::encode_chunk_header(*filter);
  const size_t capacity_at = encode_window(*filter).size() - 1;
  EXPECT_TRUE(
      filter_forms::decode_chunk_header(forged(header, capacity_at, 49), filter_forms::kUnlimited));
  EXPECT_FALSE(filter_forms::decode_chunk_header(forged(header, capacity_at, 100'000),
                                                 filter_forms::kUnlimited));
}

TEST(WindowCodec, TruncatedOrExtendedHeadersAreRejected) {
  const std::string header = filter_forms::encode_chunk_header(*forgetful_filters()[0]);
  for (size_t size = 0; size < header.size(); ++size) {
    EXPECT_FALSE(
        filter_forms::decode_chunk_header(header.substr(0, size), filter_forms::kUnlimited))
        << size;
  }
  EXPECT_FALSE(
      filter_forms::decode_chunk_header(header + std::string(8, '\0'), filter_forms::kUnlimited));
}

TEST(WindowCodec, TruncatedValuesAreRejected) {
  const std::string value = filter_forms::value_of(*forgetful_filters()[4]);
  for (size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(filter_forms::read_value(value.substr(0, size))) << size;
  }
}

// The chunk header has 64 option bits at offset 8.
TEST(WindowCodec, OtherLayoutsHaveNoWindow) {
  std::string header = filter_forms::encode_chunk_header(*forgetful_filters()[0]);
  constexpr uint32_t kWindowAlone = uint32_t{1} << 17;
  std::memcpy(header.data() + 12, &kWindowAlone, sizeof kWindowAlone);
  EXPECT_FALSE(filter_forms::decode_chunk_header(header, filter_forms::kUnlimited));
}

}  // namespace
}  // namespace persistence
