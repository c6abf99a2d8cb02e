// SPDX-License-Identifier: MIT
#include "server/admin/api.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "server/acl/users.h"
#include "server/process/server_state.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

namespace json = boost::json;

class ApiTest : public CommandTest {
 protected:
  using Query = std::vector<std::pair<std::string, std::string>>;
  using Page = HttpResponse (Api::*)(const Api::Question&);

  json::value ask(Page page, const Query& query, unsigned status = 200) {
    HttpRequest request;
    request.query = query;
    const HttpResponse response = (api_.*page)({request, users_.default_user(), "127.0.0.1:5"});
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(response.content_type, "application/json");
    return json::parse(response.body);
  }

  Api api_{services_};
};

TEST_F(ApiTest, ListsFiltersWithIdsThatFindThem) {
  run({"BF.ADD", "a b\xFF", "x"});
  const json::value page = ask(&Api::filters, {});
  EXPECT_EQ(page.at("cursor").as_string(), "0");
  ASSERT_EQ(page.at("filters").as_array().size(), 1U);
  const json::value& filter = page.at("filters").as_array()[0];
  EXPECT_EQ(filter.at("key").as_string(), "a b\\xff");
  const std::string id(filter.at("id").as_string());
  EXPECT_EQ(id, "a%20b%FF");
  const json::value stats = ask(&Api::filter, {{"key", *decode_url(id, UrlPart::kQuery)}});
  EXPECT_EQ(stats.at("items").as_int64(), 1);
  EXPECT_EQ(stats.at("layers").as_array().size(), 1U);
}

TEST_F(ApiTest, PatternsAndDatabasesChoose) {
  run({"BF.ADD", "one", "x"});
  EXPECT_TRUE(ask(&Api::filters, {{"match", "two*"}}).at("filters").as_array().empty());
  EXPECT_TRUE(ask(&Api::filters, {{"db", "3"}}).at("filters").as_array().empty());
  EXPECT_TRUE(ask(&Api::filters, {{"db", "99"}}).as_object().contains("error"));
  EXPECT_TRUE(ask(&Api::filters, {{"cursor", "x"}}).as_object().contains("error"));
}

TEST_F(ApiTest, PlansAsBfPlan) {
  for (const char* kind : {"plain", "deletable", "windowed"}) {
    const json::value answer =
        ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100000"}, {"kind", kind}});
    EXPECT_GT(answer.at("plan").at("bytes").as_int64(), 100'000) << kind;
    EXPECT_EQ(answer.at("curve").as_array().size(), 40U) << kind;
  }
  const json::value answer = ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100000"}});
  const json::value& full = answer.at("curve").at(19);
  EXPECT_EQ(full.at(0).as_double(), 100'000);
  EXPECT_NEAR(full.at(1).as_double(),
              answer.at("plan").at("error rate of the first layer").as_double(), 1e-4);
  const json::value refused = ask(&Api::plan, {{"error_rate", "2"}, {"capacity", "100"}});
  EXPECT_TRUE(refused.as_object().contains("error"));
  ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100"}, {"kind", "odd"}}, 400);
}

TEST_F(ApiTest, PlansWithTheServersDefaults) {
  const auto highest = [&] {
    const json::value answer = ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100000"}});
    return answer.at("curve").at(39).at(1).as_double();
  };
  EXPECT_LT(highest(), 0.01);  // it has grown
  run({"CONFIG", "SET", "bf-expansion-factor", "0"});
  EXPECT_GT(highest(), 0.05);
}

TEST_F(ApiTest, WhatIsMissingIsAnError) {
  ask(&Api::filter, {}, 400);
  EXPECT_TRUE(ask(&Api::filter, {{"key", "absent"}}).as_object().contains("error"));
  state_.availability.begin(Availability::kLoading);
  ask(&Api::filters, {}, 503);
  state_.availability.end(Availability::kLoading);
}

TEST_F(ApiTest, OverviewHasTheFieldsOfInfo) {
  const json::value overview = json::parse(api_.overview().body);
  EXPECT_EQ(overview.at("info").at("role").as_string(), "master");
  EXPECT_EQ(overview.at("unready").as_string(), "");
}

}  // namespace
}  // namespace server::admin
