// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "server/base/config/config.h"
#include "server/base/process/build_info.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/durability/loading/log_switch.h"
#include "server/session/session.h"
#include "tests/support/info_test.h"
#include "tests/support/set_option.h"

namespace server {
namespace {

using testing::MatchesRegex;

using ServerSectionsTest = InfoTest;

TEST_F(ServerSectionsTest, TheProcessIsDescribed) {
  EXPECT_EQ(field("server", "server_name"), "bloomery");
  EXPECT_EQ(field("server", "redis_mode"), "standalone");
  EXPECT_EQ(field("server", "process_id"), std::to_string(::getpid()));
  EXPECT_EQ(field("server", "run_id"), std::string(40, 'a'));
  EXPECT_EQ(field("server", "executable"), "bloomery-server");
  EXPECT_EQ(field("server", "config_file"), "");
  EXPECT_EQ(field("server", "process_supervised"), "no");
  EXPECT_THAT(field("server", "redis_version"), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(field("server", "redis_git_sha1"), short_commit(build_info()));
  EXPECT_EQ(field("server", "redis_git_dirty"), build_info().is_modified ? "1" : "0");
  EXPECT_EQ(field("server", "redis_build_id"), build_info().commit.substr(0, 16));
  EXPECT_THAT(field("server", "os"), MatchesRegex("Linux .+ .+"));
}

TEST_F(ServerSectionsTest, UptimeIsWholeSecondsAndDays) {
  EXPECT_EQ(field("server", "uptime_in_seconds"), "0");
  advance_ms(int64_t{2} * 86'400'000 + 5'999);
  EXPECT_EQ(field("server", "uptime_in_seconds"), "172805");
  EXPECT_EQ(field("server", "uptime_in_days"), "2");
}

TEST_F(ServerSectionsTest, SecondsSinceReadyOmitTheLoading) {
  advance_ms(60'000);
  EXPECT_EQ(field("server", "seconds_since_ready"), "0") << "the server is still loading";
  state_.ready_us = clock_.monotonic_us();
  advance_ms(5'999);
  EXPECT_EQ(field("server", "seconds_since_ready"), "5");
}

TEST_F(ServerSectionsTest, AClockThatIsSetBackShowsNoNegativeUptime) {
  advance_ms(-10'000);
  EXPECT_EQ(field("server", "uptime_in_seconds"), "0");
}

TEST_F(ServerSectionsTest, ThePortIsThatOfTlsWhereThereIsNoOther) {
  set_option(config_, OptionId::kPort, "7000");
  set_option(config_, OptionId::kTlsPort, "7001");
  EXPECT_EQ(field("server", "tcp_port"), "7000");
  set_option(config_, OptionId::kPort, "0");
  EXPECT_EQ(field("server", "tcp_port"), "7001");
}

TEST_F(ServerSectionsTest, TheClockOfUsesHas24Bits) {
  EXPECT_EQ(number("server", "lru_clock"), clock_.now_ms / 1000 & 0xffffff);
}

TEST_F(ServerSectionsTest, ClientsAreCountedWithoutReplicas) {
  EXPECT_EQ(field("clients", "connected_clients"), "2");
  other_->session->client->peer = Peer::kReplica;
  EXPECT_EQ(field("clients", "connected_clients"), "1");
  EXPECT_EQ(field("clients", "maxclients"), "10000");
}

TEST_F(ServerSectionsTest, WatchedKeysAndTheirClientsAreCounted) {
  EXPECT_EQ(field("clients", "watching_clients"), "0");
  run({"WATCH", "a", "b"});
  run_as_other({"WATCH", "a"});
  EXPECT_EQ(field("clients", "watching_clients"), "2");
  EXPECT_EQ(field("clients", "total_watched_keys"), "3");
  run({"UNWATCH"});
  EXPECT_EQ(field("clients", "watching_clients"), "1");
  EXPECT_EQ(field("clients", "total_watched_keys"), "1");
}

TEST_F(ServerSectionsTest, AvailabilityZoneIsThatOfTheConfiguration) {
  EXPECT_EQ(field("server", "availability_zone"), "");
  set_option(config_, OptionId::kAvailabilityZone, "eu-1a");
  EXPECT_EQ(field("server", "availability_zone"), "eu-1a");
}

TEST_F(ServerSectionsTest, ClientsThatWaitAreBlocked) {
  EXPECT_EQ(field("clients", "blocked_clients"), "0");
  other_->session->client->wait = ClientWait::kBlocked;
  EXPECT_EQ(field("clients", "blocked_clients"), "1");
  other_->session->client->wait = ClientWait::kPaused;
  EXPECT_EQ(field("clients", "blocked_clients"), "1") << "one client";
}

TEST_F(ServerSectionsTest, TheBiggestBuffersAreShown) {
  other_->session->client->query_buffer_bytes = 100;
  other_->session->client->query_buffer_free_bytes = 20;
  other_->session->client->output_buffer_bytes = 7;
  EXPECT_EQ(field("clients", "client_recent_max_input_buffer"), "120");
  EXPECT_EQ(field("clients", "client_recent_max_output_buffer"), "7");
}

TEST_F(ServerSectionsTest, AServerWithoutALogTellsSo) {
  EXPECT_EQ(field("persistence", "aof_enabled"), "0");
  EXPECT_EQ(field("persistence", "aof_current_size"), "none");
  EXPECT_EQ(field("persistence", "loading"), "0");
  EXPECT_EQ(field("persistence", "loading_total_bytes"), "none");
  EXPECT_EQ(field("persistence", "rdb_last_bgsave_status"), "ok");
}

TEST_F(ServerSectionsTest, ALogThatIsToOpenCountsAsARewrite) {
  EXPECT_EQ(field("persistence", "aof_rewrite_in_progress"), "0");
  services_.durability.log_switch.want(true);
  EXPECT_EQ(field("persistence", "aof_rewrite_in_progress"), "1");
  services_.durability.log_switch.want(false);
  EXPECT_EQ(field("persistence", "aof_rewrite_in_progress"), "0");
}

TEST_F(ServerSectionsTest, ChangesSinceTheSaveAreCounted) {
  const int64_t before = number("persistence", "rdb_changes_since_last_save");
  run({"SET", "a", "1"});
  run({"DEL", "a", "none"});
  EXPECT_EQ(number("persistence", "rdb_changes_since_last_save"), before + 2);
}

TEST_F(ServerSectionsTest, ProcessorTimesAreInMicroseconds) {
  for (const char* const name : {"used_cpu_sys", "used_cpu_user", "used_cpu_sys_children"}) {
    EXPECT_THAT(field("cpu", name), MatchesRegex("[0-9]+\\.[0-9]{6}")) << name;
  }
}

}  // namespace
}  // namespace server
