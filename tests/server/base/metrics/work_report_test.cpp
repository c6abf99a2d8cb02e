// SPDX-License-Identifier: MIT
#include "server/base/metrics/work_report.h"

#include <gtest/gtest.h>

#include <string>

namespace server {
namespace {

class WorkClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return 0; }
  int64_t monotonic_us() const override { return now_us; }
  int64_t now_us = 1000;
};

TEST(WorkReport, TextsTellWhatIsKnown) {
  EXPECT_EQ(progress_text(0.25, "1 of 4 MB", 10), "25 %, 1 of 4 MB, about 30 s left");
  EXPECT_EQ(progress_text(0, "0 of 4 MB", 10), "0 %, 0 of 4 MB");
  EXPECT_EQ(progress_text(1.5, "6 of 4 MB", 10), "100 %, 6 of 4 MB, about 0 s left");
  EXPECT_EQ(progress_text(-1, "6 MB", 10), "6 MB");
}

TEST(WorkReport, ALineEveryFewSecondsAndNoneForShortWork) {
  WorkClock clock;
  int lines = 0;
  const auto details = [&lines] {
    ++lines;
    return std::string("something");
  };
  WorkReport report("Working", clock);
  report.show(0.1, details);
  clock.now_us += WorkReport::kFirstLineUs - 1;
  report.show(0.2, details);
  EXPECT_EQ(lines, 0);
  clock.now_us += 1;
  report.show(0.3, details);
  report.show(0.3, details);
  EXPECT_EQ(lines, 1);
  clock.now_us += WorkReport::kLinesEveryUs;
  report.show(-1, details);
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace server
