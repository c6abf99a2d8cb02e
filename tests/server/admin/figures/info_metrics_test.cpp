// SPDX-License-Identifier: MIT
#include "server/admin/figures/info_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of_info(std::string_view info) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, info_families(parse_info(info)));
  return text.str();
}

TEST(InfoMetricsTest, ParsesFieldsOfAllSections) {
  const InfoFields fields =
      parse_info("# Server\r\nos:Linux: 6\r\n\r\n# Stats\r\nempty:\r\nnoise\r\n");
  EXPECT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields.at("os"), "Linux: 6");
  EXPECT_EQ(fields.at("empty"), "");
}

TEST(InfoMetricsTest, NumbersGetTheExportersNames) {
  const std::string text = text_of_info(
      "used_memory:1024\r\nlatest_fork_usec:2500\r\nrdb_last_bgsave_status:err\r\n"
      "aof_last_write_status:ok\r\ntotal_commands_processed:7\r\nunknown_field:1\r\n"
      "cluster_topology:older\r\n");
  EXPECT_THAT(text,
              HasSubstr("# TYPE redis_memory_used_bytes gauge\nredis_memory_used_bytes 1024\n"));
  EXPECT_THAT(text, HasSubstr("bloomery_cluster_topology_valid 0\n"));
  EXPECT_THAT(text, HasSubstr("redis_latest_fork_seconds 0.0025"));
  EXPECT_THAT(text, HasSubstr("redis_rdb_last_bgsave_status 0\n"));
  EXPECT_THAT(text, HasSubstr("redis_aof_last_write_status 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE redis_commands_processed_total counter\n"
                              "redis_commands_processed_total 7\n"));
  EXPECT_THAT(text, Not(HasSubstr("unknown_field")));
}

// promtool requires that the names of counters, and only these names, end with `_total`. A metric
// whose name breaks this rule gets the type untyped.
TEST(InfoMetricsTest, NamesThatSpeakAgainstTheirTypeHaveNone) {
  const std::string text =
      text_of_info("total_error_replies:3\r\nexpired_time_cap_reached_count:4\r\n");
  EXPECT_THAT(text, HasSubstr("# TYPE redis_total_error_replies untyped\n"
                              "redis_total_error_replies 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE redis_expired_time_cap_reached_total untyped\n"
                              "redis_expired_time_cap_reached_total 4\n"));
}

TEST(InfoMetricsTest, DatabasesAreLabels) {
  const std::string text = text_of_info("db3:keys=2,expires=1,avg_ttl=1500\r\ndbfilename:x\r\n");
  EXPECT_THAT(text, HasSubstr("redis_db_keys{db=\"db0\"} 0\nredis_db_keys{db=\"db3\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("redis_db_keys_expiring{db=\"db3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("redis_db_avg_ttl_seconds{db=\"db3\"} 1.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("dbfilename")));
}

TEST(InfoMetricsTest, ReplicasAndTheLeaderAreLabels) {
  EXPECT_THAT(text_of_info("slave0:ip=::1,port=7,state=online,offset=14,lag=1\r\n"),
              HasSubstr("redis_connected_slave_lag_seconds{slave_ip=\"::1\",slave_port=\"7\","
                        "slave_state=\"online\"} 1\n"));
  const std::string text = text_of_info(
      "master_host:a\r\nmaster_port:1\r\nmaster_link_status:down\r\nslave_read_only:1\r\n");
  EXPECT_THAT(text, HasSubstr("redis_master_link_up{master_host=\"a\",master_port=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("redis_slave_info{master_host=\"a\",master_port=\"1\","
                              "read_only=\"1\"} 1\n"));
}

TEST(InfoMetricsTest, LabelsAreEscaped) {
  const std::string text = text_of_info("errorstat_A\"\\\xFF:count=2\r\n");
  EXPECT_THAT(text, HasSubstr("redis_errors_total{err=\"A\\\"\\\\\\\\xff\"} 2\n"));
}

}  // namespace
}  // namespace server::admin
