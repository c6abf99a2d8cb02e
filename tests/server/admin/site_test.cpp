// SPDX-License-Identifier: MIT
#include "server/admin/site.h"

#include <gmock/gmock.h>

#include "server/process/server_state.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
