// SPDX-License-Identifier: MIT
//
// Tests malformed requests on a socket: truncated, empty, wrong, too big or too many, before and
// after a login.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "protocol/error_texts.h"
#include "protocol/request_parser.h"
#include "tests/support/connection_fixture.h"

namespace server::net {
namespace {

namespace request_fault = protocol::request_fault;

using testing::StartsWith;

constexpr size_t kMib = size_t{1} << 20;

class OddRequestsTest : public ConnectionFixture {
 protected:
  // Connects a new client, sends the request in parts of `part_size` bytes, and returns the reply.
  static std::string answer_to_a_new_client(std::string_view request, size_t part_size) {
    OddRequestsTest fresh;
    return fresh.answer_in_parts(request, part_size);
  }
  // Sends a request that is bigger than the socket's buffer, and returns the reply.
  std::string answer_to_much(std::string_view request) {
    return answer_in_parts(request, size_t{64} << 10);
  }
  void TestBody() override {}
};

TEST_F(OddRequestsTest, AHalfClosedClientGetsItsAnswers) {
  std::string request;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    request += request_of({"ECHO", "x" + std::to_string(i)});
    expected += bulk("x" + std::to_string(i));
  }
  send(request);
  ::shutdown(sockets_.far, SHUT_WR);
  serve();
  EXPECT_EQ(received(), expected + "(end)");
}

TEST_F(OddRequestsTest, APipelineIsAnsweredInOrder) {
  std::string request;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    request += request_of({"ECHO", std::to_string(i)});
    expected += bulk(std::to_string(i));
  }
  EXPECT_EQ(answer_to_much(request), expected);
}

TEST_F(OddRequestsTest, ProtocolErrorsAreReportedAndEndTheLink) {
  const std::string many(70'000, '1');
  const std::vector<std::pair<std::string, std::string_view>> cases = {
      {"*1\r\n+3\r\n", "expected '$', got '+'"},
      {"*x\r\n", request_fault::kInvalidCount},
      {"*2147483648\r\n", request_fault::kInvalidCount},
      {"*1\r\n$-1\r\n", request_fault::kInvalidSize},
      {"*1\r\n$x\r\n", request_fault::kInvalidSize},
      {"*1\r\n$99999999999\r\n", request_fault::kInvalidSize},
      {"SET \"x\r\n", request_fault::kUnbalancedQuotes},
      {std::string(70'000, 'x'), request_fault::kLongLine},
      {"*" + many, request_fault::kLongCount},
      {"*1\r\n$" + many, request_fault::kLongSize},
  };
  for (const auto& [request, reason] : cases) {
    EXPECT_EQ(answer_to_a_new_client(request_of({"PING"}) + request, 1 << 20),
              "+PONG\r\n" + error(protocol::protocol_error(reason)) + "(end)")
        << request.substr(0, 40);
  }
}

// Sends three requests of different kinds in each order, both whole and byte by byte.
TEST_F(OddRequestsTest, EmptyRequestsMixWithOthers) {
  const std::string line = bulk("in line");
  const std::string words = bulk("ar\r\nray");
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"\r\n", ""},
      {"*0\r\n", ""},
      {"*-1\r\n", ""},
      {"PING\r\n", "+PONG\r\n"},
      {"ECHO \"in line\"\r\n", line},
      {request_of({"ECHO", "ar\r\nray"}), words},
  };
  for (const auto& first : kinds) {
    for (const auto& second : kinds) {
      for (const auto& third : kinds) {
        const std::string request = first.first + second.first + third.first;
        const std::string expected = first.second + second.second + third.second;
        EXPECT_EQ(answer(request), expected) << request;
        std::string all;
        for (const char byte : request) {
          send({&byte, 1});
          thread_.context.run_one_for(std::chrono::milliseconds(5));
          end_round();
        }
        EXPECT_EQ(answer(request_of({"ECHO", "end"})), expected + bulk("end")) << request;
      }
    }
  }
}

TEST_F(OddRequestsTest, ARaisedBulkLimitReachesAClientThatIsThere) {
  run({"CONFIG", "SET", "proto-max-bulk-len", "1mb"});
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
  run({"CONFIG", "SET", "proto-max-bulk-len", "2mb"});
  EXPECT_EQ(answer_to_much(request_of({"SET", "k", std::string(kMib + 1, 'x')})), "+OK\r\n");
}

TEST_F(OddRequestsTest, ALoweredBulkLimitReachesAClientThatIsThere) {
  run({"CONFIG", "SET", "proto-max-bulk-len", "2mb"});
  EXPECT_EQ(answer_to_much(request_of({"SET", "k", std::string(kMib + 1, 'x')})), "+OK\r\n");
  run({"CONFIG", "SET", "proto-max-bulk-len", "1mb"});
  EXPECT_EQ(answer_to_much(request_of({"SET", "k", std::string(kMib, 'x')})), "+OK\r\n");
  EXPECT_EQ(answer("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n"),
            error(protocol::protocol_error(request_fault::kInvalidSize)) + "(end)");
}

// client-query-buffer-limit must close a client that sends a command without end, even if each of
// its arguments is small.
TEST_F(OddRequestsTest, QueryBufferLimitReachesExistingClients) {
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
  run({"CONFIG", "SET", "client-query-buffer-limit", "1mb"});
  answer("*1000000\r\n");
  const std::string word = "$1024\r\n" + std::string(1024, 'x') + "\r\n";
  for (int sent = 0; sent < 1100 && !is_closed(); ++sent) {
    send(word);
    if (sent % 32 == 0) serve();
  }
  serve();
  EXPECT_TRUE(is_closed());
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

class StrangerTest : public OddRequestsTest {
 protected:
  StrangerTest() {
    EXPECT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
    run({"SET", "present", "1"});
    EXPECT_EQ(call({"RESET"}), "+RESET\r\n");
  }
  std::string call(const std::vector<std::string>& words) { return answer(request_of(words)); }
};

TEST_F(StrangerTest, LongRequestsAreRefused) {
  EXPECT_EQ(answer("*11\r\n"),
            error(protocol::protocol_error(request_fault::kUnauthenticatedCount)) + "(end)");
}

TEST_F(StrangerTest, BigRequestsAreRefused) {
  EXPECT_EQ(answer("*1\r\n$16385\r\n"),
            error(protocol::protocol_error(request_fault::kUnauthenticatedSize)) + "(end)");
}

TEST_F(StrangerTest, AFailedLoginInAPipelineKeepsTheOrder) {
  const std::string ping = request_of({"PING"});
  const std::string bad = request_of({"AUTH", "bad"});
  const auto replies = replies_in(
      answer(bad + ping + request_of({"AUTH", "secret"}) + request_of({"ECHO", "x"}) + bad + ping));
  ASSERT_EQ(replies.size(), 6U);
  EXPECT_THAT(replies[0].text, StartsWith("WRONGPASS "));
  EXPECT_THAT(replies[1].text, StartsWith("NOAUTH "));
  EXPECT_EQ(replies[2].text, "OK");
  EXPECT_EQ(replies[3].text, "x");
  EXPECT_THAT(replies[4].text, StartsWith("WRONGPASS "));
  EXPECT_EQ(replies[5].text, "PONG");
}

TEST_F(StrangerTest, ARefusedHelloChangesNothing) {
  EXPECT_THAT(call({"HELLO", "3"}), StartsWith("-NOAUTH "));
  for (std::vector<std::string> words : {
           std::vector<std::string>{"3", "AUTH", "default", "wrong"},
           {"3", "AUTH", "nobody", "secret"},
           {"3", "AUTH", "default", "secret", "SETNAME", "a b"},
           {"4", "AUTH", "default", "secret"},
           {"3", "AUTH", "default", "secret", "NOSUCH"},
           {"3", "SETNAME", "x"},
           {"x", "AUTH", "default", "secret"},
           {"3", "AUTH", "default"},
       }) {
    words.insert(words.begin(), "HELLO");
    EXPECT_THAT(call(words), StartsWith("-")) << testing::PrintToString(words);
    EXPECT_THAT(call({"GET", "k"}), StartsWith("-NOAUTH ")) << testing::PrintToString(words);
  }
  // The rejected commands changed nothing: the connection still uses RESP2 and has no name.
  EXPECT_EQ(call({"AUTH", "secret"}), "+OK\r\n");
  EXPECT_EQ(call({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(call({"CLIENT", "GETNAME"}), "$-1\r\n");
}

TEST_F(StrangerTest, HelloChangesTheProtocolAtOnce) {
  const std::string get = request_of({"GET", "no"});
  const std::string hello = request_of({"HELLO", "3"});
  const std::string all =
      answer(request_of({"AUTH", "secret"}) + hello + get + request_of({"HELLO", "2"}) + get +
             hello + get + request_of({"RESET"}) + request_of({"AUTH", "secret"}) + get);
  EXPECT_THAT(all, testing::MatchesRegex("\\+OK\r\n%7\r\n(.|\r|\n)*_\r\n\\*14\r\n(.|\r|\n)*"
                                         "\\$-1\r\n%7\r\n(.|\r|\n)*"
                                         "_\r\n\\+RESET\r\n\\+OK\r\n\\$-1\r\n"));
}

TEST_F(StrangerTest, ResetLogsOut) {
  EXPECT_EQ(call({"AUTH", "secret"}), "+OK\r\n");
  EXPECT_EQ(call({"RESET"}), "+RESET\r\n");
  EXPECT_THAT(call({"GET", "k"}), StartsWith("-NOAUTH "));
}

// An unauthenticated client gets the same error whether a key exists or not.
TEST_F(StrangerTest, LearnsNothingOfUsersAndKeys) {
  const std::string rejected = call({"AUTH", "wrong"});
  EXPECT_THAT(rejected, StartsWith("-WRONGPASS "));
  EXPECT_EQ(call({"AUTH", "default", "wrong"}), rejected);
  EXPECT_EQ(call({"AUTH", "nobody", "wrong"}), rejected);
  EXPECT_EQ(call({"AUTH", "nobody", ""}), rejected);
  EXPECT_EQ(call({"AUTH", "nobody", "secret"}), rejected);
  EXPECT_EQ(call({"GET", "present"}), call({"GET", "absent"}));
  EXPECT_THAT(call({"NOSUCH"}), StartsWith("-ERR unknown command "));
}

}  // namespace
}  // namespace server::net
