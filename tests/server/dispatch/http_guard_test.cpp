// SPDX-License-Identifier: MIT
#include "server/dispatch/http_guard.h"

#include <gmock/gmock.h>

#include "server/base/log/log.h"
#include "server/session/session.h"
#include "tests/support/captured_log.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ::testing::HasSubstr;

class HttpGuardTest : public CommandTest {
 protected:
  HttpGuardTest() {
    // The server limits how often it logs its warning. So each test starts long after the warnings
    // of the other tests.
    static int64_t start_ms = clock_.now_ms + 1'000'000;
    clock_.now_ms = start_ms += 1'000'000;
  }

  size_t warnings() const { return log_.count("SECURITY ATTACK"); }

  CapturedLog log_;
};

TEST_F(HttpGuardTest, RequestsOfBrowsersEndTheConnection) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"POST", "/", "HTTP/1.1"}, {"post"}, {"Host:", "localhost:6379"}}) {
    TestClient client(*this);
    EXPECT_EQ(client.run(line), "");
    EXPECT_EQ(client.last_result.outcome, Outcome::kClose);
  }
  TestClient client(*this);
  client.session->authenticated = false;
  EXPECT_EQ(client.run({"Host:", "x"}), "");
  EXPECT_EQ(client.last_result.outcome, Outcome::kClose) << "a password makes no difference";
}

TEST_F(HttpGuardTest, WarnsOnceAMinute) {
  const auto attack = [this] { TestClient(*this).run({"POST", "/"}); };
  attack();
  attack();
  EXPECT_EQ(warnings(), 1U);
  EXPECT_THAT(log_.text(), HasSubstr("Connection from 127.0.0.1:1 aborted."));
  advance_ms(59'999);
  attack();
  EXPECT_EQ(warnings(), 1U);
  advance_ms(1);
  attack();
  EXPECT_EQ(warnings(), 2U);
}

TEST_F(HttpGuardTest, OtherUnknownCommandsDoNot) {
  EXPECT_THAT(run({"PUT", "/"}), is_error("ERR", "unknown command"));
  EXPECT_THAT(run({"Host", "x"}), is_error("ERR", "unknown command"));
  EXPECT_EQ(client_->last_result.outcome, Outcome::kDone);
  EXPECT_EQ(warnings(), 0U);
}

}  // namespace
}  // namespace server
