// SPDX-License-Identifier: MIT
#include "server/admin/api.h"

#include <gmock/gmock.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "server/base/process/server_state.h"
#include "server/session/acl/users.h"
#include "tests/support/command_test.h"
#include "tests/support/write_thread.h"

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

  WriteThread write_thread_{statistics_};
  Api api_{services_, write_thread_.post()};
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
    EXPECT_EQ(answer.at("curves").at(kind).as_array().size(), 40U) << kind;
  }
  const json::value answer = ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100000"}});
  const json::value& full = answer.at("curves").at("plain").at(19);
  EXPECT_EQ(full.at(0).as_double(), 100'000);
  EXPECT_NEAR(full.at(1).as_double(),
              answer.at("plan").at("error rate of the first layer").as_double(), 1e-4);
  const json::value refused = ask(&Api::plan, {{"error_rate", "2"}, {"capacity", "100"}});
  EXPECT_TRUE(refused.as_object().contains("error"));
  ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100"}, {"kind", "odd"}}, 400);
}

TEST_F(ApiTest, PlansBesideTheOtherKinds) {
  const json::value answer = ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100000"}});
  const json::object& curves = answer.at("curves").as_object();
  EXPECT_EQ(curves.size(), 4U);
  const auto bytes = [&](const char* kind) {
    return curves.at(kind).at(19).at(2).to_number<int64_t>();
  };
  EXPECT_EQ(bytes("plain"), answer.at("plan").at("bytes").as_int64());
  const auto plain_bytes = static_cast<double>(bytes("plain"));
  EXPECT_NEAR(static_cast<double>(bytes("deletable")), plain_bytes, 0.1 * plain_bytes);
  EXPECT_GT(bytes("redisbloom"), 0);
  // The layout of deletable filters cannot reach an error rate of 1e-12. So the reply has no curve
  // for deletable filters, but still has the curve for plain filters.
  const json::value odd = ask(&Api::plan, {{"error_rate", "1e-12"}, {"capacity", "100000"}});
  EXPECT_TRUE(odd.at("curves").as_object().contains("plain"));
}

TEST_F(ApiTest, ItemsAreLookedUpOneOrMany) {
  run({"BF.ADD", "f", "x"});
  const auto found = [&](const Query& query) {
    return json::serialize(ask(&Api::exists, query).at("found"));
  };
  EXPECT_EQ(found({{"key", "f"}, {"item", "x"}}), "[true]");
  EXPECT_EQ(found({{"key", "f"}, {"item", "y"}, {"item", "x"}}), "[false,true]");
  ask(&Api::exists, {{"key", "f"}}, 400);
  ask(&Api::exists, {{"item", "x"}}, 400);
}

TEST_F(ApiTest, AnAddIsAnsweredWhenItMayBe) {
  run({"BF.RESERVE", "f", "0.01", "100"});
  HttpRequest request;
  request.query = {{"key", "f"}, {"item", "x"}};
  HttpResponse response;
  write_thread_.log.end = 1;
  api_.add({request, users_.default_user(), "127.0.0.1:5"}).later([&](HttpResponse later) {
    response = std::move(later);
  });
  EXPECT_EQ(response.body, "");
  write_thread_.log.safe = 1;
  write_thread_.gate.release_safe();
  EXPECT_EQ(response.body, "{\"added\":true}");
  EXPECT_EQ(run({"BF.EXISTS", "f", "x"}), integer(1));
}

TEST_F(ApiTest, AnAddMakesNoFilter) {
  HttpRequest request;
  request.query = {{"key", "f"}, {"item", "x"}};
  std::string body;
  api_.add({request, users_.default_user(), "127.0.0.1:5"}).later([&](HttpResponse later) {
    body = later.body;
  });
  EXPECT_THAT(body, ::testing::HasSubstr("not found"));
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
  request.query.emplace_back("item", "y");
  EXPECT_EQ(api_.add({request, users_.default_user(), "127.0.0.1:5"}).status, 400U);
}

TEST_F(ApiTest, ACallerIsAsOldAsItsRequest) {
  run({"ACL", "SETUSER", "eve", "on", ">pw", "+info"});
  advance_ms(90'000);
  HttpRequest request;
  EXPECT_EQ(api_.filters({request, users_.find("eve"), "127.0.0.1:5"}).status, 403U);
  EXPECT_THAT(run({"ACL", "LOG"}), ::testing::HasSubstr(" age=0 "));
}

TEST_F(ApiTest, TellsWhatTheUserMayAsk) {
  run({"ACL", "SETUSER", "eve", "on", ">pw", "+bf.exists", "~mine"});
  const auto may = [&](const std::string& user, const std::string& key, const char* action) {
    HttpRequest request;
    request.query = {{"key", key}};
    const auto response = api_.user({request, users_.find(user), "127.0.0.1:5"});
    return json::parse(response.body).at("may").at(action).as_bool();
  };
  EXPECT_TRUE(may("default", "f", "add"));
  EXPECT_TRUE(may("eve", "mine", "exists"));
  EXPECT_FALSE(may("eve", "other", "exists"));
  EXPECT_FALSE(may("eve", "mine", "add"));
}

TEST_F(ApiTest, TellsClientsAndSlowCommands) {
  run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  run({"SET", "a", "1"});
  EXPECT_NE(json::serialize(ask(&Api::slow_log, {})).find("SET"), std::string::npos);
  EXPECT_TRUE(ask(&Api::clients, {}).is_string());
  EXPECT_TRUE(ask(&Api::log, {}).is_array());
}

TEST_F(ApiTest, HistoryBeginsWithTheSecondTick) {
  for (int i = 0; i < 3; ++i) {
    advance_ms(1000);
    api_.tick();
  }
  const json::value history = ask(&Api::history, {{"after", "0"}});
  ASSERT_EQ(history.at("rows").as_array().size(), 2U);
  const int64_t first_ms = history.at("rows").at(0).at(0).as_int64();
  const json::value later = ask(&Api::history, {{"after", std::to_string(first_ms)}});
  EXPECT_EQ(later.at("rows").as_array().size(), 1U);
  ask(&Api::history, {{"after", "x"}}, 400);
  EXPECT_TRUE(ask(&Api::commands, {}).at("commands").is_object());
}

TEST_F(ApiTest, PlansWithTheServersDefaults) {
  const auto highest = [&] {
    const json::value answer = ask(&Api::plan, {{"error_rate", "0.01"}, {"capacity", "100000"}});
    return answer.at("curves").at("plain").at(39).at(1).as_double();
  };
  // With the default options the filter grows, so its error rate stays below 0.01.
  EXPECT_LT(highest(), 0.01);
  run({"CONFIG", "SET", "bf-expansion-factor", "0"});
  EXPECT_GT(highest(), 0.05);
}

TEST_F(ApiTest, MissingArgumentsAreErrors) {
  ask(&Api::filter, {}, 400);
  EXPECT_TRUE(ask(&Api::filter, {{"key", "absent"}}).as_object().contains("error"));
  state_.availability.begin(Availability::kLoading);
  ask(&Api::filters, {}, 503);
  state_.availability.end(Availability::kLoading);
}

TEST_F(ApiTest, OverviewHasTheFieldsOfInfo) {
  const json::value overview = ask(&Api::overview, {});
  EXPECT_EQ(overview.at("info").at("role").as_string(), "master");
  EXPECT_EQ(overview.at("unready").as_string(), "");
}

}  // namespace
}  // namespace server::admin
