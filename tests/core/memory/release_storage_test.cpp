// SPDX-License-Identifier: MIT
#include "core/memory/release_storage.h"

#include <gtest/gtest.h>

#include <boost/container/vector.hpp>
#include <string>
#include <vector>

namespace core {
namespace {

TEST(ReleaseStorage, FreesTheMemory) {
  std::string text(1 << 20, 'x');
  release_storage(text);
  EXPECT_LT(text.capacity(), 100U);
  std::vector<int> values(1 << 20);
  release_storage(values);
  EXPECT_EQ(values.capacity(), 0U);
  boost::container::vector<bool> flags(1 << 20);
  release_storage(flags);
  EXPECT_EQ(flags.capacity(), 0U);
}

}  // namespace
}  // namespace core
