// SPDX-License-Identifier: MIT
//
// Tests MIGRATE when no target server exists. tests/system/data/migrate_test.py tests it with
// targets.
#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/session/awaited_reply.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/reserved_port.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class MigrateCommandTest : public CommandTest {
 protected:
  // Runs a MIGRATE command and waits for its reply, which comes when the transfer has ended.
  std::string run_to_end(const std::vector<std::string>& command) {
    std::string reply = run(command);
    EXPECT_TRUE(support::wait_until([&] {
      if (reply.empty()) reply = client_->try_answer();
      return !reply.empty();
    }));
    return reply;
  }
};

TEST_F(MigrateCommandTest, WrongArgumentsAreRefused) {
  run({"SET", "k", "v"});
  const auto refusal = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command{"MIGRATE", "127.0.0.1", "1", "k", "0", "100"};
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
  };
  EXPECT_EQ(refusal({"NOSUCH"}), error(kSyntaxError));
  EXPECT_EQ(refusal({"AUTH"}), error(kSyntaxError));
  EXPECT_EQ(refusal({"AUTH2", "user"}), error(kSyntaxError));
  EXPECT_THAT(refusal({"KEYS", "k"}), is_error("ERR", "MIGRATE KEYS"));
  EXPECT_EQ(run({"MIGRATE", "h", "1", "k", "x", "100"}), error(kNotAnInteger));
  EXPECT_EQ(run({"MIGRATE", "h", "1", "k", "0", "x"}), error(kNotAnInteger));
  EXPECT_THAT(run({"MIGRATE", "h", "0", "k", "0", "1"}), StartsWith("-ERR Invalid port"));
  EXPECT_EQ(run({"EXISTS", "k"}), integer(1));
}

TEST_F(MigrateCommandTest, MissingKeysNeedNoTarget) {
  EXPECT_EQ(run({"MIGRATE", "127.0.0.1", "1", "k", "0", "100"}), "+NOKEY\r\n");
  EXPECT_EQ(run({"MIGRATE", "127.0.0.1", "1", "", "0", "100", "KEYS", "a", "b"}), "+NOKEY\r\n");
  EXPECT_EQ(run({"MIGRATE", "127.0.0.1", "1", "", "0", "100", "KEYS"}), "+NOKEY\r\n");
}

TEST_F(MigrateCommandTest, UnreachableTargetLeavesTheKey) {
  const ReservedPort port;
  run({"SET", "k", "v"});
  EXPECT_THAT(run_to_end({"MIGRATE", "127.0.0.1", std::to_string(port.port()), "k", "0", "100"}),
              StartsWith("-IOERR error or timeout connecting to the target instance 127.0.0.1:"));
  EXPECT_EQ(run({"GET", "k"}), bulk("v"));
}

TEST_F(MigrateCommandTest, ClosedClientAbandonsItsTransfer) {
  const ReservedPort port;
  run({"SET", "k", "v"});
  // No server listens on this port, so the transfer fails. It may fail before or after the client
  // is closed.
  run({"MIGRATE", "127.0.0.1", std::to_string(port.port()), "k", "0", "60000"});
  client_->last_result.pending.reply.reset();
  EXPECT_EQ(run({"GET", "k"}), bulk("v"));
}

TEST_F(MigrateCommandTest, TransactionCannotWaitForATarget) {
  run({"SET", "k", "v"});
  run({"MULTI"});
  run({"MIGRATE", "127.0.0.1", "1", "k", "0", "100"});
  EXPECT_THAT(run({"EXEC"}), HasSubstr("-ERR MIGRATE waits for another server"));
}

TEST_F(MigrateCommandTest, KeysAreThoseBehindTheirWord) {
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "MIGRATE", "h", "1", "k", "0", "100", "COPY"}),
            array({bulk("k")}));
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "MIGRATE", "h", "1", "", "0", "100", "KEYS", "a", "b"}),
            array({bulk("a"), bulk("b")}));
  run({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "~a*"});
  run({"AUTH", "u", ""});
  EXPECT_THAT(run({"MIGRATE", "h", "1", "", "0", "100", "KEYS", "a", "b"}), StartsWith("-NOPERM"));
  EXPECT_THAT(run({"MIGRATE", "h", "1", "b", "0", "100"}), StartsWith("-NOPERM"));
  EXPECT_EQ(run({"MIGRATE", "h", "1", "", "0", "100", "KEYS", "a", "a2"}), "+NOKEY\r\n");
}

TEST_F(MigrateCommandTest, PasswordsAreHidden) {
  run({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  run({"MIGRATE", "h", "1", "k", "9", "100", "AUTH", "secret1"});
  run({"MIGRATE", "h", "1", "", "9", "100", "COPY", "AUTH2", "secret2", "secret3", "KEYS", "AUTH",
       "shown"});
  const std::string log = run({"SLOWLOG", "GET"});
  EXPECT_THAT(log, Not(HasSubstr("secret")));
  EXPECT_THAT(log, HasSubstr(bulk("shown")));
}

}  // namespace
}  // namespace server
