// SPDX-License-Identifier: MIT
#include "server/admin/history/history_json.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "server/admin/history/history.h"
#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

class HistoryJsonTest : public CommandTest {
 protected:
  History history_{registry_->size()};
};

TEST_F(HistoryJsonTest, GivesTheSecondsAfterATime) {
  for (int64_t i = 1; i <= 3; ++i) {
    Moment moment;
    moment.time_ms = 1000 * i;
    moment[Figure::kOperations] = 123.456F * static_cast<float>(i);
    history_.add(moment);
  }
  const auto all = history_json(history_, 0);
  EXPECT_EQ(all.at("rows").as_array().size(), 3U);
  EXPECT_EQ(all.at("names").as_array().size(), kFigureCount);
  const auto rows = history_json(history_, 2000).at("rows").as_array();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at(0).as_int64(), 3000);
  EXPECT_DOUBLE_EQ(rows[0].at(1).to_number<double>(), 370.4);
}

TEST_F(HistoryJsonTest, NamesTheCommandsThatRan) {
  std::vector<CommandInterval> interval(registry_->size());
  interval[registry_->find_by_full_name("client|list")->index] = {7, 12.5F};
  history_.add_interval(10'000, interval);
  const auto json = command_history_json(history_, *registry_);
  EXPECT_EQ(boost::json::serialize(json),
            R"({"ends_ms":[10000],"commands":{"client|list":{"calls":[7E0],"p99":[1.25E1]}}})");
}

}  // namespace
}  // namespace server::admin
