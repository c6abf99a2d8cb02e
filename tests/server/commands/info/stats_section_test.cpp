// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "core/keyspace/expiry_index.h"
#include "core/keyspace/keyspace.h"
#include "server/base/metrics/gauges.h"
#include "server/base/metrics/statistics.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;

class StatsSectionTest : public CommandTest {
 protected:
  void expect_line(const std::string& line) {
    EXPECT_THAT(run({"INFO", "stats"}), HasSubstr("\n" + line + "\r\n"));
  }
};

TEST_F(StatsSectionTest, LookupsAndExpiredKeysAreCounted) {
  run({"SET", "a", "1"});
  run({"SET", "b", "1", "PX", "10"});
  run({"GET", "a"});
  run({"GET", "missing"});
  expect_line("keyspace_hits:1");
  expect_line("keyspace_misses:1");
  expect_line("expired_keys:0");
  advance_ms(11);
  run({"DEL", "b"});
  expect_line("expired_keys:1");
  expect_line("expired_keys_active:0");
  keyspace_.expiry_statistics().expired_actively = 5;
  expect_line("expired_keys_active:5");
}

TEST_F(StatsSectionTest, DeniedAccessIsCountedByReason) {
  run({"ACL", "SETUSER", "reader", "on", ">pw", "+get", "~a", "resetchannels", "+subscribe"});
  EXPECT_TRUE(run_as_other({"AUTH", "reader", "wrong"}).starts_with("-WRONGPASS"));
  run_as_other({"AUTH", "reader", "pw"});
  run_as_other({"SET", "a", "1"});
  run_as_other({"GET", "b"});
  run_as_other({"SUBSCRIBE", "news"});
  expect_line("acl_access_denied_auth:1");
  expect_line("acl_access_denied_cmd:1");
  expect_line("acl_access_denied_key:1");
  expect_line("acl_access_denied_channel:1");
  expect_line("acl_access_denied_tls_cert:0");
}

TEST_F(StatsSectionTest, SubscribersAndErrorsAreCounted) {
  run_as_other({"SUBSCRIBE", "news"});
  run_as_other({"PSUBSCRIBE", "n*", "o*"});
  expect_line("pubsub_channels:1");
  expect_line("pubsub_patterns:2");
  expect_line("total_error_replies:0");
  run({"GET"});
  expect_line("total_error_replies:1");
}

TEST_F(StatsSectionTest, TheTimeAboveTheMemoryLimitGoesOn) {
  gauges_.eviction_exceeded_us = 3'000;
  gauges_.eviction_exceeded_since_us = clock_.monotonic_us();
  advance_ms(5);
  expect_line("total_eviction_exceeded_time:8");
  expect_line("current_eviction_exceeded_time:5");
}

TEST_F(StatsSectionTest, CountersOfConnectionsCommandsAndReplicas) {
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
