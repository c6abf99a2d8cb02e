// SPDX-License-Identifier: MIT
#include "server/admin/site.h"

#include <gmock/gmock.h>

#include <ostream>

#include "server/process/server_state.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The status that each page answers.
struct Answers {
  unsigned page;
  unsigned metrics;   // needs INFO
  unsigned overview;  // needs INFO
  unsigned filters;   // needs BF.SCAN
  unsigned filter;    // needs BF.STATS and the key
  unsigned plan;      // needs BF.PLAN
  bool operator==(const Answers&) const = default;
};
void PrintTo(const Answers& answers, std::ostream* out) {
  *out << answers.page << ' ' << answers.metrics << ' ' << answers.overview << ' '
       << answers.filters << ' ' << answers.filter << ' ' << answers.plan;
}

constexpr Answers kAll{200, 200, 200, 200, 200, 200};
constexpr Answers kNoRights{200, 403, 403, 403, 403, 403};
constexpr Answers kScanOnly{200, 403, 403, 200, 403, 403};
constexpr Answers kNotAdmitted{401, 401, 401, 401, 401, 401};

constexpr const char* kNoCredentials = "";
constexpr const char* kDefaultAnything = "Basic ZGVmYXVsdDp4";       // default:x
constexpr const char* kDefaultRight = "Basic ZGVmYXVsdDpzZWNyZXQ=";  // default:secret
constexpr const char* kGuest = "Basic Z3Vlc3Q6YW55dGhpbmc=";         // guest:anything
constexpr const char* kScanner = "Basic c2Nhbm5lcjo=";               // scanner:
constexpr const char* kNamedRight = "Basic ZXZlOnB3";                // eve:pw
constexpr const char* kNamedWrong = "Basic ZXZlOm5v";                // eve:no
constexpr const char* kSwitchedOff = "Basic Z29uZTp4";               // gone:x
constexpr const char* kUnknown = "Basic c3RyYW5nZXI6eA==";           // stranger:x

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

  Answers answers_to(const char* authorization) {
    const auto status = [&](const char* path) {
      HttpRequest request;
      request.method = "GET";
      request.path = path;
      request.query = {{"key", "f"}, {"error_rate", "0.01"}, {"capacity", "100"}};
      request.host = "localhost";
      request.authorization = authorization;
      return site_.answer(request, {"127.0.0.1:5", true}).status;
    };
    return {
        status("/"),           status("/metrics"), status("/api/overview"), status("/api/filters"),
        status("/api/filter"), status("/api/plan")};
  }
  // Users whose rights differ from those of the default user.
  void make_users() {
    run({"BF.ADD", "f", "x"});
    ASSERT_EQ(run({"ACL", "SETUSER", "guest", "on", "nopass"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "scanner", "on", "nopass", "~*", "+bf.scan"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "eve", "on", ">pw", "~*", "+bf.scan"}), kOk);
    ASSERT_EQ(run({"ACL", "SETUSER", "gone", "off", "nopass", "~*", "+@all"}), kOk);
  }
  // The rights of named users do not depend on those of the default user.
  void expect_named_users_have_their_own_rights() {
    EXPECT_EQ(answers_to(kGuest), kNoRights);
    EXPECT_EQ(answers_to(kScanner), kScanOnly);
    EXPECT_EQ(answers_to(kNamedRight), kScanOnly);
    EXPECT_EQ(answers_to(kNamedWrong), kNotAdmitted);
    EXPECT_EQ(answers_to(kSwitchedOff), kNotAdmitted);
    EXPECT_EQ(answers_to(kUnknown), kNotAdmitted);
  }

  std::vector<std::function<void()>> asked_;
  Heartbeat heartbeat_{[this](std::function<void()> answer) { asked_.push_back(answer); }};
  Site site_{services_, heartbeat_};
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
    const HttpResponse response = ask(part);
    EXPECT_EQ(response.status, 200U) << part;
    EXPECT_FALSE(response.body.empty()) << part;
    EXPECT_THAT(response.content_type, Not(HasSubstr("html"))) << part;
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
