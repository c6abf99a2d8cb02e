// SPDX-License-Identifier: MIT
#include "server/tools/progress_bar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server {
namespace {

using persistence::BuildProgress;
using persistence::BuildStep;

class FixedClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return 0; }
  int64_t monotonic_us() const override { return now_us; }
  int64_t now_us = 1000;
};

TEST(ProgressBar, TextTellsTheShareWhereTheEndIsKnown) {
  EXPECT_EQ(progress_text({BuildStep::kAdd, 50, 100, 1'250'000}),
            "adding   [===============               ]  50 %  1.2 M items");
  EXPECT_EQ(progress_text({BuildStep::kWrite, 120, 100, 0}),
            "writing  [==============================] 100 %  0.0 M items");
  EXPECT_EQ(progress_text({BuildStep::kCount, 7'900'000, 0, 300'000}),
            "counting 7 MB  0.3 M items");
}

TEST(ProgressBar, WritesTenTimesASecondAndClearsItsLine) {
  FixedClock clock;
  std::vector<std::string> written;
  ProgressBar bar(clock, [&](std::string_view text) { written.emplace_back(text); });
  bar.clear();
  EXPECT_TRUE(written.empty());
  bar.show({BuildStep::kAdd, 1, 100, 0});
  bar.show({BuildStep::kAdd, 2, 100, 0});
  EXPECT_EQ(written.size(), 1U);
  clock.now_us += 100'000;
  bar.show({BuildStep::kAdd, 3, 100, 0});
  EXPECT_EQ(written.size(), 2U);
  bar.show({BuildStep::kWrite, 0, 100, 0});
  EXPECT_EQ(written.size(), 3U) << "a new step is shown at once";
  bar.clear();
  EXPECT_EQ(written.back(), "\r\x1b[K");
}

}  // namespace
}  // namespace server
