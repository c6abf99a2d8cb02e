// SPDX-License-Identifier: MIT
#include "server/admin/site.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "server/base/process/server_state.h"
#include "tests/support/command_test.h"
#include "tests/support/write_thread.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A request to the admin port, and the command that the user must be allowed to run to get a reply.
struct Action {
  const char* path;
  const char* command;
  const char* method = "GET";
};
constexpr Action kActions[] = {
    {"/", ""},
    {"/metrics", "info"},
    {"/api/overview", "info"},
    {"/api/history", "info"},
    {"/api/commands", "info"},
    {"/api/filters", "bf.scan"},
    {"/api/filter", "bf.stats"},
    {"/api/exists", "bf.exists"},
    {"/api/add", "bf.insert", "POST"},
    {"/api/plan", "bf.plan"},
    {"/api/clients", "client|list"},
    {"/api/slowlog", "slowlog|get"},
    {"/api/log", "slowlog|get"},
    {"/api/user", ""},
};
// The paths for which the port returned the status 200. Any other status means that the user lacks
// a right.
using Granted = std::set<std::string>;

Granted granted_to(const std::set<std::string>& commands) {
  Granted paths;
  for (const Action& action : kActions) {
    if (commands.contains(action.command)) paths.insert(action.path);
  }
  return paths;
}

const Granted kAll = granted_to({"", "info", "bf.scan", "bf.stats", "bf.exists", "bf.insert",
                                 "bf.plan", "client|list", "slowlog|get"});
const Granted kNoRights = granted_to({""});
const Granted kScanOnly = granted_to({"", "bf.scan"});
const Granted kReader = granted_to({"", "bf.scan", "bf.stats", "bf.exists"});
const Granted kWriter = granted_to({"", "bf.insert"});
const Granted kNotAdmitted = {};

constexpr const char* kNoCredentials = "";
constexpr const char* kDefaultAnything = "Basic ZGVmYXVsdDp4";       // Base64 of "default:x"
constexpr const char* kDefaultRight = "Basic ZGVmYXVsdDpzZWNyZXQ=";  // Base64 of "default:secret"
constexpr const char* kGuest = "Basic Z3Vlc3Q6YW55dGhpbmc=";         // Base64 of "guest:anything"
constexpr const char* kScanner = "Basic c2Nhbm5lcjo=";               // Base64 of "scanner:"
constexpr const char* kNamedRight = "Basic ZXZlOnB3";                // Base64 of "eve:pw"
constexpr const char* kNamedWrong = "Basic ZXZlOm5v";                // Base64 of "eve:no"
constexpr const char* kSwitchedOff = "Basic Z29uZTp4";               // Base64 of "gone:x"
constexpr const char* kReading = "Basic cmVhZGVyOnB3";               // Base64 of "reader:pw"
constexpr const char* kWriting = "Basic d3JpdGVyOnB3";               // Base64 of "writer:pw"
constexpr const char* kElsewhereUser = "Basic ZWxzZXdoZXJlOnB3";     // Base64 of "elsewhere:pw"
constexpr const char* kUnknown = "Basic c3RyYW5nZXI6eA==";           // Base64 of "stranger:x"

class SiteTest : public CommandTest {
 protected:
  HttpResponse ask(const std::string& path, const std::string& method = "GET",
                   const std::string& authorization = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.host = "localhost";
    request.authorization = authorization;
    return site_.answer(request, {"127.0.0.1:5", true});
  }

  static HttpRequest request_for(const Action& action, const char* authorization) {
    HttpRequest request;
    request.method = action.method;
    request.path = action.path;
    request.query = {{"key", "f"}, {"item", "x"}, {"error_rate", "0.01"}, {"capacity", "100"}};
    request.host = "localhost";
    request.authorization = authorization;
    request.declares_write = true;
    return request;
  }

  HttpResponse ask_with(const Action& action, const char* authorization) {
    HttpResponse response = site_.answer(request_for(action, authorization), {"127.0.0.1:5", true});
    if (response.later) {
      response.later([&](HttpResponse later) { response = std::move(later); });
    }
    return response;
  }

  Granted answers_to(const char* authorization) {
    Granted granted;
    std::set<unsigned> refusals;
    for (const Action& action : kActions) {
      const unsigned status = ask_with(action, authorization).status;
      if (status == 200) {
        granted.insert(action.path);
      } else {
        refusals.insert(status);
      }
    }
    // If the credentials grant no path at all, each response has the status 401. Otherwise the
    // paths that are not granted have the status 403.
    for (const unsigned status : refusals) EXPECT_EQ(status, granted.empty() ? 401U : 403U);
    return granted;
  }
  // Creates users who have other rights than the default user.
  void make_users() {
    run({"BF.ADD", "f", "x"});
    ASSERT_EQ(run({"ACL", "SETUSER", "guest", "on", "nopass"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "scanner", "on", "nopass", "~*", "+bf.scan"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "eve", "on", ">pw", "~*", "+bf.scan"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "reader", "on", ">pw", "~f", "+bf.scan", "+bf.stats",
                   "+bf.exists", "+bf.mexists"}),
              kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "writer", "on", ">pw", "~f", "+bf.insert"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "elsewhere", "on", ">pw", "~other", "+bf.insert", "+bf.exists",
                   "+bf.stats"}),
              kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "gone", "off", "nopass", "~*", "+@all"}), kOk);
  }
  // Checks the rights of each named user. They must not depend on the default user's rights.
  void expect_named_users_have_their_own_rights() {
    EXPECT_EQ(answers_to(kGuest), kNoRights);
    EXPECT_EQ(answers_to(kScanner), kScanOnly);
    EXPECT_EQ(answers_to(kNamedRight), kScanOnly);
    EXPECT_EQ(answers_to(kReading), kReader);
    EXPECT_EQ(answers_to(kWriting), kWriter);
    EXPECT_EQ(answers_to(kElsewhereUser), kNoRights);
    EXPECT_EQ(answers_to(kNamedWrong), kNotAdmitted);
    EXPECT_EQ(answers_to(kSwitchedOff), kNotAdmitted);
    EXPECT_EQ(answers_to(kUnknown), kNotAdmitted);
  }

  std::vector<std::function<void()>> asked_;
  Heartbeat heartbeat_{[this](std::function<void()> answer) { asked_.push_back(answer); }};
  WriteThread write_thread_{statistics_};
  Site site_{services_, heartbeat_, write_thread_.post()};
};

TEST_F(SiteTest, UnknownPagesAndMethodsAreRefused) {
  EXPECT_EQ(ask("/nope").status, 404U);
  EXPECT_EQ(ask("/metrics/").status, 404U);
  const HttpResponse refusal = ask("/metrics", "POST");
  EXPECT_EQ(refusal.status, 405U);
  ASSERT_EQ(refusal.headers.size(), 1U);
  EXPECT_EQ(refusal.headers[0].second, "GET, HEAD");
  EXPECT_EQ(ask("/metrics", "HEAD").status, 200U);
}

TEST_F(SiteTest, ThePageHasItsParts) {
  const std::string html = ask("/").body;
  for (const char* part : {"/dashboard.css", "/dashboard.js", "/icon.svg"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  for (const char* part : {"/dashboard.css", "/dashboard.js", "/icon.svg", "/charts.js"}) {
    const HttpResponse response = ask(part);
    EXPECT_EQ(response.status, 200U) << part;
    EXPECT_FALSE(response.body.empty()) << part;
    EXPECT_THAT(response.content_type, Not(HasSubstr("html"))) << part;
  }
}

TEST_F(SiteTest, OnlyThePagesOwnScriptMayWrite) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/api/add";
  request.query = {{"key", "f"}, {"item", "x"}};
  request.host = "localhost";
  const auto status = [&] { return site_.answer(request, {"127.0.0.1:5", true}).status; };
  // A write needs a special header, here `declares_write`. A page of another site cannot send this
  // header by a form or an image, so the server rejects such requests.
  EXPECT_EQ(status(), 403U);
  request.declares_write = true;
  EXPECT_EQ(status(), 200U);
  request.method = "GET";
  EXPECT_EQ(status(), 405U);
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));  // the test does not execute accepted writes
}

// A web page of another host may make the browser send requests to this machine. The Host header
// then names that host.
TEST_F(SiteTest, WithoutAPasswordNamesAreForScrapersOnly) {
  make_users();
  const auto status = [&](const Action& action, const char* host, const char* authorization) {
    HttpRequest request = request_for(action, authorization);
    request.host = host;
    return site_.answer(request, {"127.0.0.1:5", true}).status;
  };
  for (const char* mode : {"yes", "no"}) {
    ASSERT_EQ(run({"CONFIG", "SET", "protected-mode", mode}), kOk);
    for (const Action& action : kActions) {
      const bool is_scraper = action.path == std::string_view("/metrics");
      const unsigned expected = is_scraper && mode == std::string_view("no") ? 200 : 403;
      EXPECT_EQ(status(action, "evil.example:9121", kNoCredentials), expected) << action.path;
      EXPECT_EQ(status(action, "127.0.0.1:9121", kNoCredentials), 200U) << action.path;
    }
    EXPECT_EQ(status({"/healthz", ""}, "evil.example", kNoCredentials), 200U);
    EXPECT_EQ(status({"/api/filters", "bf.scan"}, "evil.example", kScanner), 403U);
    EXPECT_EQ(status({"/api/filters", "bf.scan"}, "evil.example", kNamedRight), 200U);
  }
}

TEST_F(SiteTest, ProbesNeedNoPasswordAndTheRestDoes) {
  EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  EXPECT_EQ(ask("/healthz").status, 200U);
  EXPECT_EQ(ask("/readyz").status, 200U);
  EXPECT_EQ(ask("/metrics").status, 401U);
  EXPECT_EQ(ask("/nope").status, 401U);
  EXPECT_EQ(ask("/metrics", "GET", "Basic ZGVmYXVsdDpzZWNyZXQ=").status, 200U);
}

TEST_F(SiteTest, UsersHaveTheirOwnRightsBesideAnOpenDefault) {
  make_users();
  EXPECT_EQ(answers_to(kNoCredentials), kAll);
  EXPECT_EQ(answers_to(kDefaultAnything), kAll);
  expect_named_users_have_their_own_rights();
}

TEST_F(SiteTest, UsersHaveTheirOwnRightsBesideAPassword) {
  make_users();
  ASSERT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  EXPECT_EQ(answers_to(kNoCredentials), kNotAdmitted);
  EXPECT_EQ(answers_to(kDefaultAnything), kNotAdmitted);
  EXPECT_EQ(answers_to(kDefaultRight), kAll);
  expect_named_users_have_their_own_rights();
}

TEST_F(SiteTest, UsersHaveTheirOwnRightsWithDefaultOff) {
  make_users();
  ASSERT_EQ(run({"ACL", "SETUSER", "default", "off"}), kOk);
  EXPECT_EQ(answers_to(kNoCredentials), kNotAdmitted);
  EXPECT_EQ(answers_to(kDefaultAnything), kNotAdmitted);
  expect_named_users_have_their_own_rights();
}

TEST_F(SiteTest, UsersHaveTheirOwnRightsBesideNoRights) {
  make_users();
  ASSERT_EQ(run({"ACL", "SETUSER", "default", "-@all"}), kOk);
  EXPECT_EQ(answers_to(kNoCredentials), kNoRights);
  EXPECT_EQ(answers_to(kDefaultAnything), kNoRights);
  expect_named_users_have_their_own_rights();
}

TEST_F(SiteTest, ReadinessFollowsLoading) {
  state_.availability.begin(Availability::kLoading);
  EXPECT_EQ(ask("/readyz").status, 503U);
  EXPECT_EQ(ask("/healthz").status, 200U);
  EXPECT_THAT(ask("/metrics").body, HasSubstr("\nbloomery_ready 0\n"));
  state_.availability.end(Availability::kLoading);
  EXPECT_EQ(ask("/readyz").status, 200U);
}

TEST_F(SiteTest, AThreadThatDoesNotAnswerIsIll) {
  heartbeat_.tick(clock_.monotonic_us());
  EXPECT_EQ(ask("/healthz").status, 200U);
  advance_ms(Heartbeat::kSilentMaxUs / 1000 + 1);
  EXPECT_EQ(ask("/healthz").status, 503U);
  asked_.at(0)();
  EXPECT_EQ(ask("/healthz").status, 200U);
}

TEST_F(SiteTest, NamesOfFiltersAreForThoseWhoMayScan) {
  run({"BF.ADD", "private", "x"});
  run({"ACL", "SETUSER", "eve", "on", ">pw", "+info"});
  run({"ACL", "SETUSER", "bob", "on", ">pw", "+get", "~*"});
  const std::string line = "bloomery_filter_items{db=\"db0\",key=\"private\"} 1\n";
  EXPECT_THAT(ask("/metrics").body, HasSubstr(line));
  const std::string seen_by_eve = ask("/metrics", "GET", "Basic ZXZlOnB3").body;
  EXPECT_THAT(seen_by_eve, Not(HasSubstr("private")));
  EXPECT_THAT(seen_by_eve, HasSubstr("\nbf_bloom_num_objects 1\n"));
  EXPECT_EQ(ask("/metrics", "GET", "Basic Ym9iOnB3").status, 403U);
}

}  // namespace
}  // namespace server::admin
