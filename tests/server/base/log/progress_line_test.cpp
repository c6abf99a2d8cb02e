// SPDX-License-Identifier: MIT
#include "server/base/log/progress_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server {
namespace {

class HandClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return 0; }
  int64_t monotonic_us() const override { return now_us; }
  int64_t now_us = 1000;
};

TEST(ProgressLine, DurationsAreWhatPeopleSay) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(119), "119 s");
  EXPECT_EQ(duration_text(150), "2 min");
  EXPECT_EQ(duration_text(2 * 3600 + 5 * 60), "2 h 5 min");
}

TEST(ProgressLine, TellsTheTimeLeftOnceItCanBeKnown) {
  HandClock clock;
  std::string shown;
  ProgressLine line(clock, [&](std::string_view text) { shown = text; });
  line.show("loading", 0.1);
  EXPECT_EQ(shown, "\r\x1b[Kloading [===                           ]  10 %");
  clock.now_us += 2'000'000;
  line.show("loading", 0.25);
  EXPECT_EQ(shown, "\r\x1b[Kloading [=======                       ]  25 %  6 s left");
  clock.now_us += 2'000'000;
  line.show("loading", 1);
  EXPECT_EQ(shown, "\r\x1b[Kloading [==============================] 100 %");
}

TEST(ProgressLine, DetailsFollowTheBar) {
  HandClock clock;
  std::string shown;
  ProgressLine line(clock, [&](std::string_view text) { shown = text; });
  line.show("adding", 0.5, "1.2 M items");
  EXPECT_EQ(shown, "\r\x1b[Kadding [===============               ]  50 %  1.2 M items");
  line.show("counting", -1, "7 MB");
  EXPECT_EQ(shown, "\r\x1b[Kcounting  7 MB") << "the share is unknown";
}

TEST(ProgressLine, WritesTenTimesASecondAndEachNewWork) {
  HandClock clock;
  std::vector<std::string> written;
  ProgressLine line(clock, [&](std::string_view text) { written.emplace_back(text); });
  line.clear();
  EXPECT_TRUE(written.empty());
  line.show("loading", 0);
  line.show("loading", 0.5);
  EXPECT_EQ(written.size(), 1U);
  line.show("saving", 0);
  EXPECT_EQ(written.size(), 2U);
  clock.now_us += 100'000;
  line.show("saving", 0.1);
  EXPECT_EQ(written.size(), 3U);
  line.clear();
  EXPECT_EQ(written.back(), "\r\x1b[K");
}

TEST(ProgressLine, IsSilentWithoutATerminal) {
  HandClock clock;
  ProgressLine line(clock, nullptr);
  line.show("loading", 0.5);
  line.clear();
}

}  // namespace
}  // namespace server
