// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "server/base/config/config.h"
#include "tests/server/base/config/config_fixture.h"

namespace server {
namespace {

using ReplicationOptionsTest = ConfigTest;

TEST_F(ReplicationOptionsTest, ForeignReplicasAreChosenByWhatTheyHold) {
  EXPECT_EQ(Config().text(OptionId::kReplicaForeign), "auto");
  for (const std::string choice : {"no", "strings", "redisbloom", "valkey-bloom", "auto"}) {
    Config config;
    EXPECT_EQ(load(config, {"--replica-foreign", choice}), "");
    EXPECT_EQ(config.text(OptionId::kReplicaForeign), choice);
  }
  for (const std::string choice : {"native", "yes", ""}) {
    Config config;
    EXPECT_NE(load(config, {"--replica-foreign", choice}), "") << choice;
  }
}

}  // namespace
}  // namespace server
