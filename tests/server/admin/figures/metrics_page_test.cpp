// SPDX-License-Identifier: MIT
#include "server/admin/figures/metrics_page.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

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

}  // namespace
}  // namespace server::admin
