// SPDX-License-Identifier: MIT
#include "core/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace core {
namespace {

TEST(Descriptor, HasOneOwner) {
  Descriptor first(::open("/dev/null", O_RDONLY));
  const int number = first.get();
  Descriptor second(std::move(first));
  EXPECT_EQ(second.get(), number);
  Descriptor third;
  EXPECT_FALSE(third.is_open());
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_EQ(third.close(), 0);
  EXPECT_FALSE(third.is_open());
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace core
