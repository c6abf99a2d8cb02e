// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <memory>

#include "server/base/process/server_state.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"
#include "server/session/session.h"
#include "tests/support/test_threads.h"

namespace server {
namespace {

class UnsubscribeAllTest : public testing::Test {
 protected:
  void subscribe(SubscriptionKind kind, const std::string& name, Session& session) {
    const auto serial = pubsub_.subscribe(kind, name, {session.client->id, 0});
    session.subscriptions.add(kind, name, serial);
  }

  TestThreads threads_;
  PubSub pubsub_{1, threads_};
  ServerState state_;
  Tracking tracking_{pubsub_, state_, 1};
  Session session_{1};
  Session other_{2};
};

TEST_F(UnsubscribeAllTest, EndsSubscriptionsOfEveryKind) {
  subscribe(SubscriptionKind::kChannel, "c", session_);
  subscribe(SubscriptionKind::kChannel, "d", session_);
  subscribe(SubscriptionKind::kPattern, "p*", session_);
  subscribe(SubscriptionKind::kShardChannel, "s", session_);
  unsubscribe_all(pubsub_, session_);
  EXPECT_FALSE(session_.subscriptions.any());
  EXPECT_EQ(pubsub_.publish(SubscriptionKind::kChannel, "c", "text"), 0U);
}

TEST_F(UnsubscribeAllTest, LeavesThoseOfOthers) {
  subscribe(SubscriptionKind::kChannel, "c", session_);
  subscribe(SubscriptionKind::kChannel, "c", other_);
  unsubscribe_all(pubsub_, session_);
  EXPECT_TRUE(other_.subscriptions.any());
}

TEST_F(UnsubscribeAllTest, WithoutSubscriptionsNothingHappens) {
  unsubscribe_all(pubsub_, session_);
  EXPECT_FALSE(session_.subscriptions.any());
}

TEST_F(UnsubscribeAllTest, StopTrackingEndsTheClientsRow) {
  session_.subscriptions.set_tracking(std::make_unique<ClientTracking>());
  tracking_.begin({session_.client->id, 0}, false);
  stop_tracking(tracking_, session_);
  EXPECT_EQ(session_.subscriptions.tracking(), nullptr);
  EXPECT_EQ(state_.tracking.clients, 0U);
  stop_tracking(tracking_, session_);
  EXPECT_EQ(state_.tracking.clients, 0U);
}

TEST_F(UnsubscribeAllTest, LastClientsEndEmptiesTheTable) {
  tracking_.begin({session_.client->id, 0}, false);
  tracking_.remember({"k", 1}, {session_.client->id, 0});
  tracking_.forget(session_.client->id);
  EXPECT_EQ(state_.tracking.keys, 0U);
  EXPECT_FALSE(state_.listeners.any());
}

}  // namespace
}  // namespace server
