// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "server/base/config/config.h"
#include "server/base/config/option_table.h"

namespace server {
namespace {

TEST(TestOptionsTest, DelaysTakeBothSignsAndAreHidden) {
  Config config;
  for (const std::string name : {"rdb-key-save-delay", "key-load-delay"}) {
    for (const std::string delay : {"-2147483648", "0", "2147483647"}) {
      const NamedValue pair{name, delay};
      EXPECT_TRUE(config.set({&pair, 1})) << name << delay;
    }
    const std::string_view every[] = {"*delay*"};
    for (const auto& [shown, value] : config.get(every)) EXPECT_NE(shown, name);
    const std::string_view itself[] = {name};
    EXPECT_EQ(config.get(itself).at(0).second, "2147483647");
  }
}

TEST(TestOptionsTest, WatchdogPeriodIsHidden) {
  Config config;
  const std::string_view every[] = {"*watchdog*"};
  EXPECT_TRUE(config.get(every).empty());
  const NamedValue negative{"watchdog-period", "-1"};
  EXPECT_FALSE(config.set({&negative, 1}));
  const NamedValue period{"watchdog-period", "200"};
  EXPECT_TRUE(config.set({&period, 1}));
  EXPECT_EQ(config.integer(OptionId::kWatchdogPeriod), 200);
}

TEST(TestOptionsTest, SignalsHaveBitsForTheirWords) {
  Config config;
  EXPECT_EQ(config.integer(OptionId::kShutdownOnSigterm), 0);
  const NamedValue pair{"shutdown-on-sigterm", "force now"};
  ASSERT_TRUE(config.set({&pair, 1}));
  EXPECT_EQ(config.integer(OptionId::kShutdownOnSigterm), 4 + 8);
  EXPECT_EQ(config.integer(OptionId::kShutdownOnSigint), 0);
}

}  // namespace
}  // namespace server
