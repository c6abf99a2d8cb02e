// SPDX-License-Identifier: MIT
#include "server/admin/figures/metrics_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsPageTest : public CommandTest {};

TEST_F(MetricsPageTest, AFamilyComesOnce) {
  run({"SET", "a", "1"});
  run({"NOSUCH"});
  std::istringstream lines(metrics_text(services_, {}));
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    EXPECT_TRUE(names.insert(line).second) << line;
  }
  EXPECT_GT(names.size(), 100U);
}

TEST_F(MetricsPageTest, ShowsWhatTheServerDoes) {
  run({"SET", "a", "1"});
  const std::string text = metrics_text(services_, {});
  EXPECT_THAT(text, HasSubstr("\nredis_up 1\n"));
  EXPECT_THAT(text, HasSubstr("\nredis_db_keys{db=\"db0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nredis_commands_total{cmd=\"set\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nbloomery_ready 1\n"));
  EXPECT_THAT(text, HasSubstr("run_id=\"aaaa"));
  EXPECT_THAT(text, Not(HasSubstr("bf_bloom")));
}

TEST_F(MetricsPageTest, FiltersHaveNamesThatAreAllowed) {
  CensusFigures figures;
  figures.object_count = 1;
  LargeFilter filter;
  filter.key = "a\n\xFF";
  filter.fill_ratio = 0.25;
  figures.largest.push_back(filter);
  const std::string text = metrics_text(services_, {.filters = &figures});
  EXPECT_THAT(text, HasSubstr("\nbf_bloom_num_objects 1\n"));
  EXPECT_THAT(text,
              HasSubstr("\nbloomery_filter_fill_ratio{db=\"db0\",key=\"a\\\\x0a\\\\xff\"} 0.25\n"));
  const std::string less = metrics_text(services_, {.filters = &figures, .shows_keys = false});
  EXPECT_THAT(less, HasSubstr("\nbf_bloom_num_objects 1\n"));
  EXPECT_THAT(less, Not(HasSubstr("bloomery_filter_fill_ratio")));
}

TEST_F(MetricsPageTest, ALongNameIsCutAndStaysItsOwn) {
  CensusFigures figures;
  const std::string whole(256, 'k');
  for (const std::string& key :
       {whole, std::string(5'000'000, 'n') + "1", std::string(5'000'000, 'n') + "2"}) {
    LargeFilter filter;
    filter.key = key;
    figures.largest.push_back(filter);
  }
  const std::string text = metrics_text(services_, {.filters = &figures});
  EXPECT_LT(text.size(), 1'000'000U);
  EXPECT_THAT(text,
              HasSubstr(fmt::format("bloomery_filter_items{{db=\"db0\",key=\"{}\"}}", whole)));
  EXPECT_THAT(text, HasSubstr(std::string(200, 'n') + "... (5000001 bytes, "));
  std::istringstream lines(text);
  std::set<std::string> series;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("bloomery_filter_items{")) continue;
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_EQ(series.size(), 3U);
}

TEST_F(MetricsPageTest, ANodeTellsOfItsCluster) {
  EXPECT_THAT(metrics_text(services_, {}), Not(HasSubstr("redis_cluster_state")));
  const auto be_with = [&](const std::vector<std::string>& alive) {
    cluster_.publish(std::make_shared<cluster::View>(
        cluster::id_of('a'), cluster::TopologyVersion{cluster::sample_topology(), 9}, alive));
    return metrics_text(services_, {});
  };
  cluster_.set_service(cluster::Service::kUp);
  cluster_.set_etcd_up(true);
  const std::string whole = be_with({cluster::id_of('a'), cluster::id_of('c')});
  for (const char* line :
       {"redis_cluster_state 1", "redis_cluster_slots_assigned 16384",
        "redis_cluster_slots_ok 16384", "redis_cluster_slots_fail 0", "redis_cluster_known_nodes 3",
        "redis_cluster_size 2", "redis_cluster_current_epoch 9", "redis_cluster_my_epoch 7",
        "bloomery_cluster_etcd_up 1", "bloomery_cluster_topology_valid 1",
        "bloomery_cluster_permit_seconds 0"}) {
    EXPECT_THAT(whole, HasSubstr(std::string("\n") + line + "\n"));
  }
  cluster_.set_service(cluster::Service::kDown);
  cluster_.set_etcd_up(false);
  const std::string broken = be_with({cluster::id_of('a')});
  EXPECT_THAT(broken, HasSubstr("\nredis_cluster_state 0\n"));
  EXPECT_THAT(broken, Not(HasSubstr("\nredis_cluster_slots_fail 0\n")));
  EXPECT_THAT(broken, HasSubstr("\nbloomery_cluster_etcd_up 0\n"));
}

}  // namespace
}  // namespace server::admin
