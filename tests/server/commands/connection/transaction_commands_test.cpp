// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

class TransactionCommandsTest : public CommandTest {
 protected:
  static std::vector<std::string> watch_of(size_t count) {
    std::vector<std::string> command{"WATCH"};
    for (size_t i = 0; i < count; ++i) command.push_back("key:" + std::to_string(i));
    return command;
  }
};

// Each of the commands below names 200,000 keys. An implementation with quadratic time would need
// minutes for each command.
TEST_F(TransactionCommandsTest, ManyKeysMayBeWatched) {
  constexpr size_t kKeys = support::rounds(200'000, 20'000);
  const auto command = watch_of(kKeys);
  EXPECT_EQ(run(command), kOk);
  EXPECT_EQ(run(command), kOk);
  EXPECT_EQ(client_->session->client->watched_keys, kKeys);
  run({"MULTI"});
  EXPECT_EQ(run_as_other({"SET", "key:7777", "1"}), kOk);
  EXPECT_EQ(run({"EXEC"}), "*-1\r\n");
  EXPECT_EQ(run(command), kOk);
  EXPECT_EQ(run({"UNWATCH"}), kOk);
}

TEST_F(TransactionCommandsTest, TheSameNameInTwoDatabasesIsTwoKeys) {
  run({"WATCH", "a", "a"});
  run({"SELECT", "1"});
  run({"WATCH", "a"});
  EXPECT_EQ(client_->session->client->watched_keys, 2);
  run_as_other({"SET", "a", "1"});
  run({"MULTI"});
  EXPECT_EQ(run({"EXEC"}), "*-1\r\n");
  // The failed EXEC has removed all watches, so the next transaction succeeds.
  run({"MULTI"});
  EXPECT_EQ(run({"EXEC"}), "*0\r\n");
}

}  // namespace
}  // namespace server
