// SPDX-License-Identifier: MIT
#include "persistence/window_rotations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/bloom/window.h"
#include "core/memory/memory_budget.h"
#include "persistence/journal.h"

namespace persistence {
namespace {

using core::bloom::ScalableFilter;
using core::bloom::WindowUnit;

constexpr int64_t kBeginMs = 1'700'000'000'000;

class WindowRotations : public testing::Test {
 protected:
  WindowRotations() { journal_.set_active(true); }

  static std::unique_ptr<ScalableFilter> make(WindowUnit unit) {
    core::bloom::FilterParameters parameters;
    parameters.window = {.length = 10'000, .unit = unit, .generations = 4};
    return *ScalableFilter::create(parameters, core::UnlimitedMemory(), kBeginMs);
  }
  std::string journalled() {
    std::string bytes;
    journal_.take(bytes);
    return bytes;
  }
  bool rotate(int64_t after_ms) {
    return rotate_by_clock(journal_, {0, "key"}, *filter_, kBeginMs + after_ms,
                           core::UnlimitedMemory());
  }
  void add() { filter_->add("item", core::UnlimitedMemory()); }

  Journal journal_;
  std::unique_ptr<ScalableFilter> filter_ = make(WindowUnit::kMilliseconds);
};

TEST_F(WindowRotations, DueRotationIsJournalled) {
  add();
  EXPECT_TRUE(rotate(2499));
  EXPECT_EQ(journalled(), "");
  EXPECT_TRUE(rotate(5100));
  const std::string start = std::to_string(kBeginMs + 5000);
  EXPECT_TRUE(journalled().ends_with("*4\r\n$7\r\nBF.TURN\r\n$3\r\nkey\r\n$1\r\n2\r\n$13\r\n" +
                                     start + "\r\n"));
  EXPECT_EQ(filter_->window()->newest().ordinal, 2);
}

TEST_F(WindowRotations, RotateOnlyIfThereIsSomethingToForget) {
  EXPECT_FALSE(has_rotations(*filter_));
  add();
  EXPECT_TRUE(has_rotations(*filter_));
  EXPECT_TRUE(rotate(2500));
  EXPECT_TRUE(has_rotations(*filter_));
  EXPECT_TRUE(rotate(15'000));
  EXPECT_FALSE(has_rotations(*filter_));
}

TEST_F(WindowRotations, ItemWindowsIgnoreTheClock) {
  filter_ = make(WindowUnit::kItems);
  add();
  EXPECT_FALSE(has_rotations(*filter_));
  EXPECT_TRUE(rotate(1'000'000));
  EXPECT_EQ(journalled(), "");
}

}  // namespace
}  // namespace persistence
