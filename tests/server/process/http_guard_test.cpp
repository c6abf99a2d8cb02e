// SPDX-License-Identifier: MIT
#include "server/process/http_guard.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "server/process/log.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What is logged goes to text().
class HttpGuardTest : public CommandTest {
 protected:
  HttpGuardTest() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
    // Later than whatever other tests have warned of.
    static int64_t start_ms = clock_.now_ms + 1'000'000;
    clock_.now_ms = start_ms += 1'000'000;
  }
  ~HttpGuardTest() override { spdlog::set_default_logger(before_); }

  size_t warnings() const {
    const std::string text = stream_.str();
    size_t count = 0;
    for (size_t at = text.find("SECURITY ATTACK"); at != std::string::npos;
         at = text.find("SECURITY ATTACK", at + 1)) {
      ++count;
    }
    return count;
  }

  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream stream_;
};

TEST_F(HttpGuardTest, RequestsOfBrowsersEndTheConnection) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"POST", "/", "HTTP/1.1"}, {"post"}, {"Host:", "localhost:6379"}}) {
    Client client(*this);
    EXPECT_EQ(client.run(line), "");
    EXPECT_EQ(client.last_outcome, Outcome::kClose);
  }
  Client client(*this);
  client.session->authenticated = false;
  EXPECT_EQ(client.run({"Host:", "x"}), "");
  EXPECT_EQ(client.last_outcome, Outcome::kClose) << "a password makes no difference";
}

TEST_F(HttpGuardTest, WarnsOnceAMinute) {
  const auto attack = [this] { Client(*this).run({"POST", "/"}); };
  attack();
  attack();
  EXPECT_EQ(warnings(), 1U);
  EXPECT_THAT(stream_.str(), HasSubstr("Connection from 127.0.0.1:1 aborted."));
  advance_ms(59'999);
  attack();
  EXPECT_EQ(warnings(), 1U);
  advance_ms(1);
  attack();
  EXPECT_EQ(warnings(), 2U);
}

TEST_F(HttpGuardTest, OtherUnknownCommandsDoNot) {
  EXPECT_THAT(run({"PUT", "/"}), StartsWith("-ERR unknown command"));
  EXPECT_THAT(run({"Host", "x"}), StartsWith("-ERR unknown command"));
  EXPECT_EQ(client_->last_outcome, Outcome::kDone);
  EXPECT_EQ(warnings(), 0U);
}

}  // namespace
}  // namespace server
