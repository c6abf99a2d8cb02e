// SPDX-License-Identifier: MIT
#include "server/session/invalidation_news.h"

#include <gtest/gtest.h>

#include "server/session/clients.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"
#include "tests/support/test_threads.h"

namespace server {
namespace {

class InvalidationNewsTest : public ::testing::Test {
 protected:
  InvalidationNewsTest() {
    clients_.add(session_.client);
    clients_.add(target_.client);
    session_.client->resp = target_.client->resp = protocol::RespVersion::kResp3;
    session_.subscriptions.set_tracking(std::make_unique<ClientTracking>());
  }

  ClientTracking& tracking() { return *session_.subscriptions.tracking(); }

  std::string news(const Invalidation& invalidation) {
    return invalidation_news(pubsub_, clients_, session_,
                             {.invalidation = std::make_shared<const Invalidation>(invalidation),
                              .receivers = {{session_.client->id}}});
  }
  // Returns the messages that the target of the redirection receives.
  std::string redirected() {
    const auto delivery = pubsub_.take(0);
    if (!delivery) return "nothing";
    EXPECT_TRUE(delivery->is_redirected);
    EXPECT_EQ(delivery->receivers.at(0).session_id, target_.client->id);
    return invalidation_news(pubsub_, clients_, target_, *delivery);
  }

  const Invalidation kKey{"*1\r\n$1\r\nk\r\n", 7, false};
  const Invalidation kAll{};
  const std::string kPush = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";

  TestThreads threads_;
  PubSub pubsub_{1, threads_};
  Clients clients_;
  Session session_{1};
  Session target_{2};
};

TEST_F(InvalidationNewsTest, AreAPush) {
  EXPECT_EQ(news(kKey), kPush);
  EXPECT_EQ(news(kAll), ">2\r\n$10\r\ninvalidate\r\n_\r\n");
}

TEST_F(InvalidationNewsTest, RESP2HasNone) {
  session_.client->resp = protocol::RespVersion::kResp2;
  EXPECT_EQ(news(kKey), "");
  EXPECT_EQ(news(kAll), "");
}

TEST_F(InvalidationNewsTest, NoMessageAfterTrackingOff) {
  session_.subscriptions.set_tracking(nullptr);
  EXPECT_EQ(news(kKey), "");
}

TEST_F(InvalidationNewsTest, OfAnotherModeAreNotForThisOne) {
  tracking().is_broadcast = true;
  EXPECT_EQ(news(kKey), "");
  EXPECT_NE(news(kAll), "");
  Invalidation broadcast = kKey;
  broadcast.is_broadcast = true;
  EXPECT_EQ(news(broadcast), kPush);
  tracking().is_broadcast = false;
  EXPECT_EQ(news(broadcast), "");
}

TEST_F(InvalidationNewsTest, NoLoopIsForOwnChangesOfKeys) {
  Invalidation own = kKey;
  own.writer = session_.client->id;
  EXPECT_EQ(news(own), kPush);
  tracking().no_loop = true;
  EXPECT_EQ(news(own), "");
  EXPECT_EQ(news(kKey), kPush);
  EXPECT_NE(news(kAll), "");
}

TEST_F(InvalidationNewsTest, GoToAnotherClient) {
  tracking().redirect = target_.client->id;
  EXPECT_EQ(news(kKey), "");
  EXPECT_EQ(redirected(), kPush);
  target_.client->resp = protocol::RespVersion::kResp2;
  EXPECT_EQ(news(kKey), "");
  EXPECT_EQ(redirected(), "");
  target_.subscriptions.add(SubscriptionKind::kChannel, "any", 1);
  EXPECT_EQ(news(kKey), "");
  EXPECT_EQ(redirected(),
            "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n");
  EXPECT_EQ(news(kAll), "");
  EXPECT_EQ(redirected(), "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n");
}

TEST_F(InvalidationNewsTest, OfARedirectThatHasGone) {
  tracking().redirect = target_.client->id;
  clients_.remove(target_.client->id);
  EXPECT_EQ(news(kKey), ">2\r\n$21\r\ntracking-redir-broken\r\n:2\r\n");
  EXPECT_TRUE(tracking().is_broken);
  EXPECT_TRUE(session_.client->subscriptions.redirect_is_broken);
  session_.client->resp = protocol::RespVersion::kResp2;
  EXPECT_EQ(news(kKey), "");
  EXPECT_EQ(redirected(), "nothing");
}

}  // namespace
}  // namespace server
