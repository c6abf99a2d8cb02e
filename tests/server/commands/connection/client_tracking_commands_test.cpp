// SPDX-License-Identifier: MIT
//
// Which commands' keys are remembered for whom. tests/system/tracking_test.py compares the replies
// with Redis'.
#include "server/commands/connection/client_tracking_commands.h"

#include "tests/support/command_test.h"

namespace server {
namespace {

class ClientTrackingCommandsTest : public CommandTest {
 protected:
  // How many keys are remembered; forgets them.
  uint64_t remembered() {
    const uint64_t count = state_.tracking.keys;
    tracking_.invalidate_all();
    while (pubsub_.take(0)) continue;
    return count;
  }
  uint64_t remembered_after(const std::vector<std::string>& command) {
    run(command);
    return remembered();
  }
  void track(std::vector<std::string> options) {
    run({"CLIENT", "TRACKING", "OFF"});
    options.insert(options.begin(), {"CLIENT", "TRACKING", "ON"});
    EXPECT_EQ(run(options), kOk);
  }
};

TEST_F(ClientTrackingCommandsTest, KeysOfReadsAreRemembered) {
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  track({});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  EXPECT_EQ(remembered_after({"MGET", "k", "l", "k"}), 2U);
  EXPECT_EQ(remembered_after({"BF.KEXISTS", "2", "f", "g", "item"}), 2U);
  EXPECT_EQ(remembered_after({"MEMORY", "USAGE", "k"}), 1U);
  EXPECT_EQ(remembered_after({"SET", "k", "v", "GET"}), 0U);
  EXPECT_EQ(remembered_after({"KEYS", "*"}), 0U);
  EXPECT_EQ(remembered_after({"GET"}), 0U);
  run_as_other({"GET", "k"});
  EXPECT_EQ(remembered(), 0U);
}

TEST_F(ClientTrackingCommandsTest, BroadcastRemembersNothing) {
  track({"BCAST"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
}

TEST_F(ClientTrackingCommandsTest, OptInIsForOneCommandOrTransaction) {
  track({"OPTIN"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  run({"CLIENT", "CACHING", "YES"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  run({"CLIENT", "CACHING", "YES"});
  run({"CLIENT", "ID"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  run({"CLIENT", "CACHING", "YES"});
  run({"NOPE"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  run({"CLIENT", "CACHING", "YES"});
  run({"MULTI"});
  run({"GET", "k"});
  run({"GET", "l"});
  EXPECT_EQ(remembered_after({"EXEC"}), 2U);
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
}

TEST_F(ClientTrackingCommandsTest, OptOutIsForOneCommand) {
  track({"OPTOUT"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  run({"CLIENT", "CACHING", "NO"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
}

TEST_F(ClientTrackingCommandsTest, EndsWithTheSessionAndWithRESET) {
  track({"BCAST", "PREFIX", "a"});
  EXPECT_EQ(state_.tracking.clients, 1U);
  run({"RESET"});
  EXPECT_EQ(state_.tracking.clients, 0U);
  track({});
  client_.reset();
  EXPECT_EQ(state_.tracking.clients, 0U);
  EXPECT_FALSE(state_.listeners.any());
}

TEST_F(ClientTrackingCommandsTest, PrefixesCostMemory) {
  track({});
  const uint64_t before = client_->session->memory_bytes();
  track({"BCAST", "PREFIX", std::string(10'000, 'x')});
  EXPECT_GT(client_->session->memory_bytes(), before + 10'000);
  run({"CLIENT", "TRACKING", "OFF"});
  EXPECT_EQ(client_->session->memory_bytes(), before);
}

}  // namespace
}  // namespace server
