// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using LatencySectionTest = CommandTest;

TEST_F(LatencySectionTest, TrackingCanBeOff) {
  run({"GET", "a"});
  EXPECT_THAT(run({"INFO", "latencystats"}), HasSubstr("latency_percentiles_usec_get:p50="));
  run({"CONFIG", "SET", "latency-tracking-info-percentiles", "0 99.99999"});
  EXPECT_THAT(run({"INFO", "latencystats"}), HasSubstr(",p99.99999="));
  run({"CONFIG", "SET", "latency-tracking", "no"});
  run({"GET", "a"});
  EXPECT_THAT(run({"INFO", "latencystats"}), Not(HasSubstr("usec_get")));
  EXPECT_THAT(run({"LATENCY", "HISTOGRAM", "get"}), HasSubstr("calls\r\n:1\r\n"));
}

}  // namespace
}  // namespace server
