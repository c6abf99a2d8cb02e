// SPDX-License-Identifier: MIT
#include "server/base/process/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "server/base/config/config.h"

namespace server {
namespace {

TEST(DescriptorLimitTest, EachClientGetsADescriptor) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  Config config;
  const NamedValue wanted{"maxclients", "100"};
  ASSERT_TRUE(config.set({&wanted, 1}));
  raise_descriptor_limit(config);
  struct rlimit after {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_GE(after.rlim_cur, before.rlim_cur);
  EXPECT_GE(after.rlim_cur, static_cast<rlim_t>(config.max_clients()) + 32);
  EXPECT_EQ(config.max_clients(), 100);
}

}  // namespace
}  // namespace server
