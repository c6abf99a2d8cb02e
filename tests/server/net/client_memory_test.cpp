// SPDX-License-Identifier: MIT
//
// Tests the memory of clients before they log in, and the memory reported for a running command.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "server/dispatch/permissions.h"
#include "tests/support/connection_fixture.h"
#include "tests/support/error_matcher.h"

namespace server::net {
namespace {

using testing::StartsWith;

class ClientMemoryTest : public ConnectionFixture {
 protected:
  // Returns the numeric fields of the client's line in CLIENT LIST.
  std::map<std::string, int64_t> figures() {
    return figures_in(run({"CLIENT", "LIST", "ID", std::to_string(remote_.client().id)}));
  }
  static std::map<std::string, int64_t> figures_in(const std::string& line) {
    std::map<std::string, int64_t> figures;
    std::istringstream fields(line.substr(line.find('\n') + 1));
    for (std::string field; fields >> field;) {
      const size_t middle = field.find('=');
      if (middle == std::string::npos) continue;
      figures[field.substr(0, middle)] = std::strtoll(field.c_str() + middle + 1, nullptr, 10);
    }
    return figures;
  }
  void log_out() {
    EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
    EXPECT_EQ(answer(request_of({"RESET"})), "+RESET\r\n");
  }
};

TEST_F(ClientMemoryTest, TheRunningCommandIsShown) {
  const std::string request = request_of({"CLIENT", "INFO"});
  auto shown = figures_in(answer(request));
  EXPECT_EQ(shown["qbuf"], static_cast<int64_t>(request.size()));
  EXPECT_EQ(shown["argv-mem"], 10);
  EXPECT_GT(shown["qbuf-free"], 0);
}

TEST_F(ClientMemoryTest, AStrangersCommandThatNeverEndsIsBounded) {
  log_out();
  std::string request = "*10\r\n";
  for (int i = 0; i < 9; ++i) request += "$16000\r\n" + std::string(16'000, 'x') + "\r\n";
  answer_in_parts(request, 16'384);
  EXPECT_TRUE(is_closed());
}

TEST_F(ClientMemoryTest, AStrangersLineThatNeverEndsIsBounded) {
  log_out();
  answer_in_parts(std::string(60'000, 'x'), 16'384);
  EXPECT_TRUE(is_closed());
}

TEST_F(ClientMemoryTest, TheBeginningOfALoginTakesLittle) {
  log_out();
  EXPECT_EQ(answer("*2\r\n$4\r\nAUTH\r\n$16000\r\n" + std::string(15'000, 'x')), "");
  auto shown = figures();
  EXPECT_GT(shown["qbuf"], 0);
  EXPECT_LE(shown["qbuf"] + shown["qbuf-free"], 20 << 10);
}

TEST_F(ClientMemoryTest, LoggedInClientsMaySendAtOnce) {
  log_out();
  std::string request =
      request_of({"AUTH", std::string(16'384, 'x')}) + request_of({"AUTH", "secret"});
  for (int i = 0; i < 300; ++i) {
    request += request_of({"SET", "k" + std::to_string(i), std::string(1000, 'v')});
  }
  const auto replies = replies_in(answer_in_parts(request, size_t{128} << 10));
  ASSERT_EQ(replies.size(), 302U);
  EXPECT_THAT(replies[0].text, StartsWith("WRONGPASS"));
  for (size_t i = 1; i < replies.size(); ++i) EXPECT_EQ(replies[i].text, "OK") << i;
}

TEST_F(ClientMemoryTest, SendsAnUnauthenticatedClientsFirstErrors) {
  log_out();
  std::string request;
  for (int i = 0; i < 2000; ++i) request += request_of({"GET", "a"});
  EXPECT_THAT(answer(request), StartsWith(encoded_error(kNotAuthenticated)));
  EXPECT_TRUE(is_closed());
  EXPECT_THAT(run({"INFO", "stats"}),
              testing::HasSubstr("client_output_buffer_limit_disconnections:1\r\n"));
}

}  // namespace
}  // namespace server::net
