// SPDX-License-Identifier: MIT
#include "server/cluster/tool/cluster_tool.h"

#include <gtest/gtest.h>

#include <string>

namespace server::cluster {
namespace {

// What it does with etcd and with servers: tests/system/cluster_tool_test.py.
TEST(ClusterToolTest, NamesAndEndpointsAreChecked) {
  EXPECT_FALSE(ClusterTool::make({.endpoints = {"http://127.0.0.1:1"}}, "Big Name", {}));
  EXPECT_FALSE(ClusterTool::make({.endpoints = {"127.0.0.1:1"}}, "a", {}));
  EXPECT_TRUE(ClusterTool::make({.endpoints = {"http://127.0.0.1:1"}}, "a", {}));
}

TEST(ClusterToolTest, NothingHappensWithoutEtcd) {
  const auto tool = ClusterTool::make({.endpoints = {"http://127.0.0.1:1"}}, "a", {});
  ASSERT_TRUE(tool);
  const auto created = (*tool)->create({{"127.0.0.1", 1}}, 0);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().message, "ERR etcd: http://127.0.0.1:1: connect: Connection refused");
  EXPECT_FALSE((*tool)->status());
}

}  // namespace
}  // namespace server::cluster
