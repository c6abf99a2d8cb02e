// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using CommandSectionsTest = CommandTest;

TEST_F(CommandSectionsTest, CommandsAreListedOnceTheyWereCalled) {
  EXPECT_THAT(run({"INFO", "commandstats"}), Not(HasSubstr("cmdstat_get")));
  run({"GET", "a"});
  run({"GET", "a"});
  run({"GET"});
  run({"SETBIT", "s", "x", "1"});
  const std::string info = run({"INFO", "commandstats"});
  EXPECT_THAT(info, HasSubstr("cmdstat_get:calls=2,usec="));
  EXPECT_THAT(info, HasSubstr("rejected_calls=1,failed_calls=0"));
  EXPECT_THAT(info, HasSubstr("cmdstat_setbit:calls=1,usec="));
  EXPECT_THAT(info, HasSubstr("rejected_calls=0,failed_calls=1"));
}

TEST_F(CommandSectionsTest, ErrorsAreCountedByTheirCode) {
  run({"SET", "s", "x"});
  run({"BF.ADD", "s", "x"});
  run({"BF.ADD", "s", "x"});
  run({"GET"});
  const std::string info = run({"INFO", "errorstats"});
  EXPECT_THAT(info, HasSubstr("errorstat_WRONGTYPE:count=2\r\n"));
  EXPECT_THAT(info, HasSubstr("errorstat_ERR:count=1\r\n"));
}

TEST_F(CommandSectionsTest, LatencyTrackingCanBeOff) {
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
