// SPDX-License-Identifier: MIT
#include "server/session/session.h"

#include "server/base/process/server_state.h"
#include "server/session/pubsub/pub_sub.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using SessionTest = CommandTest;

TEST_F(SessionTest, AllSubscriptionsEndAtOnce) {
  run({"SUBSCRIBE", "a", "b"});
  run({"PSUBSCRIBE", "c*"});
  run({"SSUBSCRIBE", "d"});
  run_as_other({"SUBSCRIBE", "a"});
  Session& session = *client_->session;
  EXPECT_TRUE(session.is_in_subscriber_mode());
  unsubscribe_all(pubsub_, session);
  EXPECT_FALSE(session.subscriptions.any());
  EXPECT_FALSE(session.is_in_subscriber_mode());
  EXPECT_EQ(pubsub_.subscriber_count(SubscriptionKind::kChannel, "a"), 1u);
  EXPECT_EQ(pubsub_.subscriber_count(SubscriptionKind::kChannel, "b"), 0u);
  EXPECT_EQ(pubsub_.name_count(SubscriptionKind::kPattern), 0u);
  EXPECT_EQ(pubsub_.name_count(SubscriptionKind::kShardChannel), 0u);
}

TEST_F(SessionTest, TrackingEndsForItsSessionAlone) {
  run({"HELLO", "3"});
  run_as_other({"HELLO", "3"});
  run({"CLIENT", "TRACKING", "on"});
  run_as_other({"CLIENT", "TRACKING", "on"});
  EXPECT_EQ(state_.tracking.clients, 2u);
  stop_tracking(tracking_, *client_->session);
  EXPECT_EQ(client_->session->subscriptions.tracking(), nullptr);
  EXPECT_NE(other_->session->subscriptions.tracking(), nullptr);
  EXPECT_EQ(state_.tracking.clients, 1u);
  stop_tracking(tracking_, *client_->session);
  EXPECT_EQ(state_.tracking.clients, 1u);
}

TEST_F(SessionTest, OtherThreadsSeeTheTransaction) {
  const Session& session = *client_->session;
  EXPECT_EQ(session.client->queued_commands, -1);
  run({"MULTI"});
  run({"SET", "a", "1"});
  EXPECT_EQ(session.client->queued_commands, 1);
  EXPECT_GT(session.client->queued_bytes, 0u);
  const uint64_t with_queue = session.client->memory_bytes();
  run({"DISCARD"});
  EXPECT_EQ(session.client->queued_commands, -1);
  EXPECT_LT(session.client->memory_bytes(), with_queue);
}

TEST(Session, AKillWakesItsConnection) {
  Session session(1);
  session.client->request_kill();
  EXPECT_TRUE(session.client->kill_requested);
  int wakes = 0;
  session.client->wake = [&wakes] { ++wakes; };
  session.client->request_kill();
  EXPECT_EQ(wakes, 1);
}

}  // namespace
}  // namespace server
