// SPDX-License-Identifier: MIT
#include "server/background_tasks.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "persistence/journal.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/replication/stream/replication.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class UpkeepTest : public CommandTest {
 protected:
  UpkeepTest() {
    journal_.set_active(true);
    key_events_.choose(~uint32_t{0});
    pubsub_.subscribe(SubscriptionKind::kPattern, "__keyevent@*", {1000, 0});
  }
  std::string journalled() {
    std::string taken;
    journal_.take(taken);
    return taken;
  }
  // Returns the events that subscribers will receive.
  std::string events_text() {
    std::string heads;
    while (const auto delivery = pubsub_.take(0)) {
      if (delivery->message != nullptr) heads += delivery->message->head;
    }
    return heads;
  }

  std::function<void()> posted_;
  std::unique_ptr<BackgroundTasks> background_tasks_ = std::make_unique<BackgroundTasks>(
      services_, replication_.own_expiries(),
      [this](std::function<void()> task) { posted_ = std::move(task); }, 1);
};

TEST_F(UpkeepTest, DeletesExpiredKeysAndNotifies) {
  run({"SET", "k", "v", "PX", "10"});
  run({"SET", "stays", "v"});
  journalled();
  events_text();
  background_tasks_->tick();
  EXPECT_EQ(journalled(), "");
  advance_ms(11);
  background_tasks_->tick();
  EXPECT_THAT(journalled(), HasSubstr("DEL\r\n$1\r\nk\r\n"));
  EXPECT_THAT(events_text(), HasSubstr("expired"));
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
}

TEST_F(UpkeepTest, NotifiesOfKeysThatACommandFindsExpired) {
  run({"SET", "k", "v", "PX", "10"});
  journalled();
  events_text();
  advance_ms(11);
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_THAT(journalled(), HasSubstr("DEL\r\n$1\r\nk\r\n"));
  EXPECT_THAT(events_text(), HasSubstr("expired"));
}

TEST_F(UpkeepTest, EvictionKeepsALoweredLimit) {
  for (int i = 0; i < 200; ++i) run({"SET", "k" + std::to_string(i), std::string(1100, 'v')});
  ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), kOk);
  journalled();
  events_text();
  memory_.set_limit(memory_.refresh() - 50'000);
  background_tasks_->tick();
  for (int i = 0; i < 1000 && posted_; ++i) std::exchange(posted_, nullptr)();
  EXPECT_THAT(journalled(), HasSubstr("DEL\r\n"));
  EXPECT_THAT(events_text(), HasSubstr("evicted"));
  EXPECT_NE(run({"DBSIZE"}), integer(200));
}

TEST_F(UpkeepTest, CommandsGetTheirRoomFromIt) {
  for (int i = 0; i < 200; ++i) run({"SET", "k" + std::to_string(i), std::string(1100, 'v')});
  memory_.set_limit(memory_.refresh());
  EXPECT_THAT(run({"SET", "new", std::string(20'000, 'v')}), HasSubstr("OOM"));
  ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), kOk);
  EXPECT_EQ(run({"SET", "new", std::string(20'000, 'v')}), kOk);
}

// Evictions must be journalled before the transaction that causes them, because another client may
// write an evicted key before the transaction ends.
TEST_F(UpkeepTest, JournalsEvictionsBeforeTheirTransaction) {
  for (int i = 0; i < 200; ++i) run({"SET", "k" + std::to_string(i), std::string(20'000, 'v')});
  ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), kOk);
  ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-eviction-tenacity", "100"}), kOk);
  run({"MULTI"});
  run({"SET", "first", "1"});
  run({"BF.RESERVE", "f", "0.01", "2000000"});
  journalled();
  memory_.set_limit(memory_.refresh() + 500'000);
  EXPECT_EQ(run({"EXEC"}), array({kOk, kOk}));
  const std::string bytes = journalled();
  const size_t begin = bytes.find("MULTI");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_THAT(bytes.substr(0, begin), HasSubstr("DEL\r\n"));
  EXPECT_THAT(bytes.substr(begin), Not(HasSubstr("DEL\r\n")));
}

TEST_F(UpkeepTest, WindowsTurn) {
  run({"BF.RESERVE", "w", "0.01", "400", "WINDOW", "10"});
  run({"BF.ADD", "w", "a"});
  journalled();
  events_text();
  advance_ms(2500);
  background_tasks_->tick();
  EXPECT_THAT(journalled(), HasSubstr("BF.TURN"));
  EXPECT_THAT(events_text(), HasSubstr("bloom.turn"));
}

TEST_F(UpkeepTest, InvalidatesAndTrimsTrackedKeys) {
  run({"HELLO", "3"});
  ASSERT_EQ(run({"CLIENT", "TRACKING", "ON"}), kOk);
  run({"SET", "k", "v", "PX", "10"});
  run({"GET", "k"});
  run({"GET", "second"});
  ASSERT_EQ(state_.tracking.keys.load(), 2u);
  advance_ms(11);
  background_tasks_->tick();
  EXPECT_EQ(state_.tracking.keys.load(), 1u);
  run({"GET", "third"});
  tracking_.set_limit(1);
  background_tasks_->tick();
  EXPECT_EQ(state_.tracking.keys.load(), 1u);
  run({"FLUSHALL"});
  EXPECT_EQ(state_.tracking.keys.load(), 0u);
}

TEST_F(UpkeepTest, NothingIsLeftOfItAfterItsEnd) {
  run({"SET", "k", "v", "PX", "10"});
  journalled();
  background_tasks_.reset();
  advance_ms(11);
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_THAT(journalled(), Not(HasSubstr("DEL")));
  ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), kOk);
  memory_.set_limit(1);
  EXPECT_THAT(run({"SET", "new", "v"}), HasSubstr("OOM"));
}

}  // namespace
}  // namespace server
