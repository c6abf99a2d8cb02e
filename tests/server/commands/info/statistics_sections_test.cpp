// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "core/keyspace/expiry_index.h"
#include "core/keyspace/keyspace.h"
#include "server/base/metrics/gauges.h"
#include "tests/support/info_test.h"

namespace server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using StatisticsSectionsTest = InfoTest;

TEST_F(StatisticsSectionsTest, HitsAndMissesAreCounted) {
  run({"SET", "a", "1"});
  run({"GET", "a"});
  run({"MGET", "a", "none", "none2"});
  EXPECT_EQ(field("stats", "keyspace_hits"), "2");
  EXPECT_EQ(field("stats", "keyspace_misses"), "2");
}

TEST_F(StatisticsSectionsTest, CommandsAreCountedByTheirWholeNames) {
  run({"GET", "a"});
  run({"GET", "a"});
  run({"CLIENT", "ID"});
  EXPECT_THAT(field("commandstats", "cmdstat_get"), StartsWith("calls=2,usec="));
  EXPECT_THAT(field("commandstats", "cmdstat_client|id"), StartsWith("calls=1,"));
  EXPECT_EQ(field("commandstats", "cmdstat_set"), "none");
}

TEST_F(StatisticsSectionsTest, SeparatesRejectedFromFailedCalls) {
  run({"GET"});
  run({"SET", "a", "text"});
  run({"INCR", "a"});
  EXPECT_THAT(field("commandstats", "cmdstat_get"),
              testing::EndsWith(",rejected_calls=1,failed_calls=0"));
  EXPECT_THAT(field("commandstats", "cmdstat_incr"),
              testing::EndsWith(",rejected_calls=0,failed_calls=1"));
}

TEST_F(StatisticsSectionsTest, ErrorsAreCountedByTheirCodes) {
  run({"SET", "a", "text"});
  run({"INCR", "a"});
  run({"BF.ADD", "a", "item"});
  run({"NOSUCH"});
  EXPECT_EQ(field("errorstats", "errorstat_ERR"), "count=2");
  EXPECT_EQ(field("errorstats", "errorstat_WRONGTYPE"), "count=1");
  EXPECT_EQ(field("stats", "total_error_replies"), "3");
}

TEST_F(StatisticsSectionsTest, DatabasesWithKeysHaveALine) {
  EXPECT_THAT(info({"keyspace"}), Not(HasSubstr("db0")));
  run({"SET", "a", "1"});
  run({"SET", "b", "1", "EX", "100"});
  run({"SELECT", "3"});
  run({"SET", "a", "1"});
  EXPECT_THAT(field("keyspace", "db0"), StartsWith("keys=2,expires=1,avg_ttl="));
  EXPECT_EQ(field("keyspace", "db3"), "keys=1,expires=0,avg_ttl=0");
  EXPECT_EQ(field("keyspace", "db1"), "none");
}

TEST_F(StatisticsSectionsTest, FiltersAreSummed) {
  EXPECT_EQ(field("bf", "bf_bloom_num_objects"), "0");
  run({"BF.RESERVE", "f", "0.01", "100"});
  run({"BF.MADD", "f", "a", "b"});
  run({"BF.RESERVE", "g", "0.01", "50"});
  EXPECT_EQ(field("bf", "bf_bloom_num_objects"), "2");
  EXPECT_EQ(field("bf", "bf_bloom_num_filters_across_objects"), "2");
  EXPECT_EQ(field("bf", "bf_bloom_num_items_across_objects"), "2");
  EXPECT_EQ(field("bf", "bf_bloom_capacity_across_objects"), "150");
  EXPECT_GT(number("bf", "bf_bloom_total_memory_bytes"), 100);
}

TEST_F(StatisticsSectionsTest, SubscriptionsAreCountedByName) {
  run({"SUBSCRIBE", "c"});
  run_as_other({"SUBSCRIBE", "c", "d"});
  run_as_other({"RESET"});
  TestClient reader(*this);
  EXPECT_THAT(reader.run({"INFO", "stats"}), HasSubstr("\r\npubsub_channels:1\r\n"));
}

TEST_F(StatisticsSectionsTest, ResetstatTakesCountersBack) {
  run({"GET", "none"});
  run({"NOSUCH"});
  gauges_.evicted_keys = 3;
  keyspace_.expiry_statistics().expired = 4;
  EXPECT_EQ(field("stats", "expired_keys"), "4");
  EXPECT_EQ(run({"CONFIG", "RESETSTAT"}), kOk);
  for (const char* const name : {"keyspace_misses", "total_error_replies", "evicted_keys",
                                 "expired_keys", "evicted_clients"}) {
    EXPECT_EQ(field("stats", name), "0") << name;
  }
  EXPECT_EQ(field("errorstats", "errorstat_ERR"), "none");
  EXPECT_EQ(field("commandstats", "cmdstat_get"), "none");
}

}  // namespace
}  // namespace server
