// SPDX-License-Identifier: MIT
#include "server/durability/saves/save_progress.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(SaveProgress, TellsWhatIsLeft) {
  const SaveProgress quarter{6'000'000, 250, 1000, 1, 10};
  EXPECT_DOUBLE_EQ(quarter.share(), 0.25);
  // A quarter of the save took 6 s, so the other three quarters take three times as long.
  EXPECT_EQ(quarter.left_s(), 19);
}

TEST(SaveProgress, KnowsNothingAtTheBeginning) {
  EXPECT_EQ(SaveProgress().left_s(), -1);
  EXPECT_EQ((SaveProgress{5'000'000, 0, 1000, 0, 10}).left_s(), -1);
  EXPECT_EQ((SaveProgress{5'000'000, 10, 0, 0, 10}).left_s(), -1);
}

TEST(SaveProgress, IsNeverDoneBeforeItsEnd) {
  const SaveProgress more_than_expected{6'000'000, 5000, 1000, 10, 10};
  EXPECT_LT(more_than_expected.share(), 1);
  EXPECT_EQ(more_than_expected.left_s(), 1);
}

}  // namespace
}  // namespace server
