// SPDX-License-Identifier: MIT
#include "core/result.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace core {
namespace {

TEST(ResultTest, KeepsItsErrorWithoutItsValue) {
  EXPECT_TRUE(without_value(Result<int>(3)));
  const Result<> failed = without_value(Result<int>(Error{"ERR full"}));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "ERR full");
}

TEST(ResultTest, ValueOfAnErrorThrowsItsMessage) {
  const Result<int> failed = Error{"ERR full"};
  try {
    (void)failed.value();
    FAIL() << "value() returned";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "unchecked error: ERR full");
  }
}

}  // namespace
}  // namespace core
