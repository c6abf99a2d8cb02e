// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "server/base/metrics/gauges.h"
#include "server/base/metrics/statistics.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;

using TrafficFiguresTest = CommandTest;

TEST_F(TrafficFiguresTest, CountersOfConnectionsCommandsAndReplicas) {
  statistics_.thread(0).connections_received.add(3);
  statistics_.thread(0).connections_rejected.add(2);
  statistics_.thread(0).input_bytes.add(40);
  gauges_.operations_per_second = 7;
  gauges_.input_bytes_per_second = 1536;
  run({"GET", "a"});
  const std::string info = run({"INFO", "stats"});
  for (const char* const line :
       {"total_connections_received:3", "total_commands_processed:1", "instantaneous_ops_per_sec:7",
        "total_net_input_bytes:40", "instantaneous_input_kbps:1.50", "rejected_connections:2",
        "total_net_repl_output_bytes:0", "sync_full:0", "sync_partial_err:0"}) {
    EXPECT_THAT(info, HasSubstr("\n" + std::string(line) + "\r\n"));
  }
}

}  // namespace
}  // namespace server
