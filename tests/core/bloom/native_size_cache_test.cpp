// SPDX-License-Identifier: MIT
//
// Each thread caches the sizes of native layers. A new thread computes them again.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "core/bloom/native_layout.h"

namespace core::bloom {
namespace {

TEST(NativeLayoutTest, CachedSizesMatchTheRequest) {
  const auto size_in_new_thread = [](uint64_t capacity, double rate) {
    std::optional<Geometry> geometry;
    std::thread([&] { geometry = NativeLayout::size(capacity, rate); }).join();
    return geometry;
  };
  for (int turn = 0; turn < 2; ++turn) {
    for (uint64_t capacity = 1; capacity < 40; ++capacity) {
      for (const double rate : {0.01, 0.02}) {
        ASSERT_EQ(NativeLayout::size(capacity, rate), size_in_new_thread(capacity, rate))
            << capacity << " " << rate;
      }
    }
  }
}

}  // namespace
}  // namespace core::bloom
