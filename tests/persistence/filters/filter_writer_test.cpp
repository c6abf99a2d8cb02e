// SPDX-License-Identifier: MIT
#include "persistence/filters/filter_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "persistence/filters/filter_builder.h"
#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using namespace filter_forms;

// Returns the encoding of the filter's array alone, as a module value without other fields.
std::string array_of(const ScalableFilter& filter, std::string_view head, Packing packing) {
  std::string bytes;
  ByteWriter writer(bytes);
  FilterWriter out(writer, module_id("bloomery-", 1), packing);
  out.array_behind(head, filter, 0);
  out.end();
  return bytes;
}

TEST(FilterWriter, ArraysFollowTheirHeads) {
  for (const uint64_t capacity : {100, 2'000'000}) {
    const auto filter = make(parameters_of(NativeLayout::kId, 0.01, capacity, 0), "item", 1);
    const auto array = filter->layer_bits(0).bytes();
    const std::string expected =
        "head" + std::string(reinterpret_cast<const char*>(array.data()), array.size());
    const std::string plain = array_of(*filter, "head", Packing::kNever);
    const std::string packed = array_of(*filter, "head", Packing::kIfSmaller);
    EXPECT_LT(packed.size(), plain.size());
    for (const std::string& value : {plain, packed}) {
      StreamReader stream(value);
      stream.length();
      ModuleReader reader(stream);
      StringReader string = reader.string();
      std::string read(string.size(), ' ');
      ASSERT_TRUE(string.read(read));
      reader.end();
      EXPECT_TRUE(reader.ok());
      EXPECT_EQ(read, expected);
    }
  }
}

TEST(FilterWriter, RoundedArraysAreStoredAsWholeWords) {
  auto parameters = parameters_of(RedisBloomLayout::kId, 0.25, 1, 0);
  parameters.rounds_to_power_of_two = true;
  const auto filter = make(parameters, "item", 1);
  ASSERT_LT(filter->layer_bits(0).bytes().size(), 8U);
  std::string padded;
  EXPECT_EQ(stored_array(*filter, 0, padded).size(), 8U);
  const LayerClaim claim = claim_of(*filter, 0);
  EXPECT_EQ(claim.array_bytes, 8U);
  EXPECT_EQ(claim.bit_count, 64U);
  EXPECT_EQ(uint64_t{1} << claim.exponent, filter->layer_info(0).geometry.bit_count);
}

}  // namespace
}  // namespace persistence
