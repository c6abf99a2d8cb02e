// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "server/latency/latency_monitor.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;

class LatencyCommandsTest : public CommandTest {
 protected:
  LatencyCommandsTest() {
    run({"CONFIG", "SET", "latency-monitor-threshold", "100"});
    observer_.note_event("fork", 150);
    advance_ms(2000);
    observer_.note_event("fork", 120);
    observer_.note_event("fork", 99);
    observer_.note_event("eviction-cycle", 300);
  }
};

TEST_F(LatencyCommandsTest, EventsAreShownByKind) {
  EXPECT_EQ(run({"LATENCY", "LATEST"}),
            "*2\r\n*4\r\n$14\r\neviction-cycle\r\n:1700000002\r\n:300\r\n:300\r\n"
            "*4\r\n$4\r\nfork\r\n:1700000002\r\n:120\r\n:150\r\n");
  EXPECT_EQ(run({"LATENCY", "HISTORY", "fork"}),
            "*2\r\n*2\r\n:1700000000\r\n:150\r\n*2\r\n:1700000002\r\n:120\r\n");
  EXPECT_EQ(run({"LATENCY", "HISTORY", "none"}), "*0\r\n");
  EXPECT_THAT(run({"LATENCY", "GRAPH", "fork"}), HasSubstr("fork - high 150 ms, low 120 ms"));
  EXPECT_EQ(run({"LATENCY", "GRAPH", "none"}), error("ERR No samples available for event 'none'"));
  EXPECT_THAT(run({"LATENCY", "DOCTOR"}), HasSubstr("2. fork: 2 latency spikes"));
}

TEST_F(LatencyCommandsTest, ResetTellsHowManyKindsItForgot) {
  EXPECT_EQ(run({"LATENCY", "RESET", "fork", "none"}), integer(1));
  EXPECT_EQ(run({"LATENCY", "RESET"}), integer(1));
  EXPECT_EQ(run({"LATENCY", "LATEST"}), "*0\r\n");
}

TEST_F(LatencyCommandsTest, HistogramsCountCallsOfEachCommand) {
  run({"GET", "a"});
  run({"GET", "a"});
  run({"CLIENT", "ID"});
  const std::string one = run({"LATENCY", "HISTOGRAM", "get", "none", "client", "client|list"});
  EXPECT_TRUE(one.starts_with("*4\r\n$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:2\r\n")) << one;
  EXPECT_THAT(one, HasSubstr("$9\r\nclient|id\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"));
  EXPECT_THAT(run({"LATENCY", "HISTOGRAM"}), HasSubstr("latency|histogram"));
  run({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(run({"LATENCY", "HISTOGRAM", "get"}), "*0\r\n");
}

}  // namespace
}  // namespace server
