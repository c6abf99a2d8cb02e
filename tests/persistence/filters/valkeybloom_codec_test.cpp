// SPDX-License-Identifier: MIT
#include "persistence/filters/valkeybloom_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/bloom/filter_union.h"
#include "tests/support/filter_forms.h"

namespace persistence {
namespace {

using namespace filter_forms;

TEST(ValkeyBloomCodec, ValkeyBloomLayersHaveTheRatesOfASeries) {
  const auto filter = make(parameters_of(ValkeyBloomLayout::kId, 0.01, 10, 2), "v", 100);
  const std::string honest = encode_chunk_header(*filter);
  ASSERT_GT(filter->layer_count(), 1U);
  ASSERT_TRUE(decode_chunk_header(honest, kMebibyte));
  // The header contains the error rate of each layer. After the layers, it contains the error rate
  // of the whole filter. A header with one changed rate is rejected.
  for (const size_t at : {kHead + filter->layer_count() * kLayer, kRateAt, kRateAt + kLayer}) {
    std::string forged = honest;
    overwrite(forged, at, 0.02);
    EXPECT_FALSE(decode_chunk_header(forged, kMebibyte)) << at;
  }
}

TEST(ValkeyBloomCodec, OlderLayersOfValkeyBloomAreFull) {
  const auto filter = make(parameters_of(ValkeyBloomLayout::kId, 0.01, 10, 2), "v", 100);
  std::string header = encode_chunk_header(*filter);
  ASSERT_EQ(header[kItemsAt], 10);
  header[kItemsAt] = 9;
  header[0] = static_cast<char>(header[0] - 1);
  EXPECT_FALSE(decode_chunk_header(header, kMebibyte));
}

// A header without its chunks is a filter that counts items but has no bits.
TEST(ValkeyBloomCodec, AUnionWithAHeaderCanBeStored) {
  const auto parameters = parameters_of(ValkeyBloomLayout::kId, 0.01, 100, 2);
  const auto longer = make(parameters, "v", 150);
  const auto shorter = make(parameters, "v", 50);
  const auto half = decode_chunk_header(encode_chunk_header(*longer), kMebibyte);
  ASSERT_TRUE(half);
  using Inputs = std::vector<const ScalableFilter*>;
  for (const Inputs& inputs : {Inputs{shorter.get(), half->get()}, {half->get(), shorter.get()}}) {
    const auto united = core::bloom::unite(inputs, core::bloom::Overfill::kRefused);
    ASSERT_TRUE(united) << united.error().message;
    EXPECT_EQ((*united)->item_count(), 150U);
    expect_same_in_every_form(**united);
  }
}

}  // namespace
}  // namespace persistence
