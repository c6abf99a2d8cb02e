// SPDX-License-Identifier: MIT
#include "server/admin/figures/overview.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "server/base/process/server_state.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

class OverviewTest : public CommandTest {};

TEST_F(OverviewTest, CountsTheCallsOfAllCommands) {
  run({"SET", "a", "1"});
  run({"GET", "a"});
  const auto overview = overview_of(services_);
  const auto& latency = overview.at("latency").as_object();
  EXPECT_EQ(latency.at("total").as_uint64(), 2U);
  EXPECT_EQ(latency.at("counts").as_array().size(), latency.at("bounds_us").as_array().size());
  EXPECT_EQ(overview.at("info").at("role").as_string(), "master");
}

TEST_F(OverviewTest, TellsWhyItIsNotReady) {
  state_.availability.begin(Availability::kLoading);
  EXPECT_NE(overview_of(services_).at("unready").as_string(), "");
  state_.availability.end(Availability::kLoading);
  EXPECT_EQ(overview_of(services_).at("unready").as_string(), "");
}

}  // namespace
}  // namespace server::admin
