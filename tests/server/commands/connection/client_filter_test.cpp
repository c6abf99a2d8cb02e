// SPDX-License-Identifier: MIT
//
// Tests the options that both CLIENT LIST and CLIENT KILL accept.
#include "server/commands/connection/client_filter.h"

#include <gmock/gmock.h>

#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class ClientFilterTest : public CommandTest {
 protected:
  // Returns the client ids in the reply of CLIENT LIST, in the order of the reply.
  std::string listed(std::vector<std::string> options) {
    options.insert(options.begin(), {"CLIENT", "LIST"});
    const std::string reply = run(options);
    if (reply.starts_with('-')) return reply;
    std::string ids;
    for (size_t at = 0; (at = reply.find("id=", at)) != std::string::npos; at += 3) {
      const bool begins_line = at == 0 || reply[at - 1] == '\n';
      if (begins_line) ids += reply.substr(at + 3, reply.find(' ', at) - at - 3) + ' ';
    }
    return ids;
  }
};

TEST_F(ClientFilterTest, ListTakesTheOptionsOfKill) {
  other_->session->client->address = "127.0.0.1:3";
  EXPECT_EQ(listed({}), "1 2 ");
  EXPECT_EQ(listed({"ID", "2", "1"}), "2 1 ");
  EXPECT_EQ(listed({"ID", "2", "9", "USER", "default"}), "2 ");
  EXPECT_EQ(listed({"ID", "0", "-1"}), "");
  EXPECT_EQ(listed({"ADDR", "127.0.0.1:3"}), "2 ");
  EXPECT_EQ(listed({"LADDR", "127.0.0.1:2", "SKIPME", "yes"}), "2 ");
  EXPECT_EQ(listed({"TYPE", "normal", "SKIPME", "no"}), "1 2 ");
  EXPECT_EQ(listed({"TYPE", "primary"}), "");
}

TEST_F(ClientFilterTest, OnlyClientsOfTheAgeAreMeant) {
  client_->session->client->created_us = clock_.monotonic_us();
  other_->session->client->created_us = clock_.monotonic_us();
  EXPECT_EQ(listed({"MAXAGE", "10"}), "");
  advance_ms(5'000);
  client_->session->client->created_us = clock_.monotonic_us();
  advance_ms(5'000);
  EXPECT_EQ(listed({"MAXAGE", "10"}), "2 ");
  EXPECT_EQ(run({"CLIENT", "KILL", "MAXAGE", "10"}), integer(1));
  EXPECT_TRUE(other_->session->client->kill_requested.load());
}

TEST_F(ClientFilterTest, KillTakesSeveralIds) {
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "2", "7", "SKIPME", "no"}), integer(1));
  EXPECT_TRUE(other_->session->client->kill_requested.load());
}

TEST_F(ClientFilterTest, BadOptionsAreRefused) {
  EXPECT_EQ(listed({"ID"}), error(kSyntaxError));
  EXPECT_EQ(listed({"ID", "2", "x"}), error(kListedIds.error));
  EXPECT_EQ(listed({"COLOUR", "red"}), error(kSyntaxError));
  EXPECT_EQ(listed({"TYPE", "x", "-1"}), error(kSyntaxError));
  EXPECT_EQ(listed({"SKIPME", "perhaps"}), error(kSyntaxError));
  EXPECT_THAT(listed({"MAXAGE", "0"}), is_error("ERR", "greater than 0"));
  EXPECT_THAT(listed({"MAXAGE", "old"}), is_error("ERR", "integer"));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "x", "2"}), error(kKilledIds.error));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "2", "-1"}), error(kSyntaxError));
  EXPECT_EQ(run({"CLIENT", "KILL", "ID", "type", "normal"}), error(kKilledIds.error));
}

}  // namespace
}  // namespace server
