// SPDX-License-Identifier: MIT
#include "server/cluster_node/member_start.h"

#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "server/base/config/config.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

TEST(MemberStartTest, BootIdLastsUntilTheMachineRestarts) {
  EXPECT_EQ(boot_id().size(), 36U);
  EXPECT_EQ(boot_id(), boot_id());
}

TEST(MemberStartTest, RecognizesAnEarlierBoot) {
  const Config config;
  const auto is_same_boot = [&config](const std::string& kept_boot) {
    NodeFile file{id_of('a'), {}, "s1", 7};
    file.kept_boot = kept_boot;
    const MemberOptions options = member_options(file, PermitTimes::of_timeout(1), config);
    EXPECT_EQ(options.kept_epoch, 7U);
    return options.is_same_boot;
  };
  EXPECT_TRUE(is_same_boot(boot_id()));
  EXPECT_FALSE(is_same_boot("an earlier one"));
  EXPECT_FALSE(is_same_boot("")) << "the file is of an older version";
}

TEST(MemberStartTest, BigTimeoutToleratesASlowEtcd) {
  using std::chrono::milliseconds;
  const std::pair<const char*, milliseconds> limits[] = {
      {"5000", milliseconds(700)}, {"8000", milliseconds(800)}, {"60000", milliseconds(1000)}};
  for (const auto& [timeout, limit] : limits) {
    Config config;
    const char* const arguments[] = {"bloomery-server", "--cluster-node-timeout", timeout};
    ASSERT_TRUE(config.load(std::size(arguments), arguments));
    EXPECT_EQ(etcd_options(config).call_limit, limit) << timeout;
  }
}

}  // namespace
}  // namespace server::cluster
