// SPDX-License-Identifier: MIT
#include "server/session/pubsub/key_events.h"

#include <gtest/gtest.h>

#include "server/base/config/event_class.h"
#include "server/session/pubsub/pub_sub.h"
#include "tests/support/test_threads.h"

namespace server {
namespace {

class KeyEventsTest : public ::testing::Test {
 protected:
  KeyEventsTest() { pubsub_.subscribe(SubscriptionKind::kPattern, "*", {1, 0}); }

  // Returns "channel=payload" for each published message.
  std::vector<std::string> taken() {
    std::vector<std::string> texts;
    while (const auto delivery = pubsub_.take(0)) {
      const std::string& head = delivery->message->head;
      const size_t channel = head.find("__key");
      const std::string& payload = *delivery->message->payload;
      texts.push_back(head.substr(channel, head.find("\r\n", channel) - channel) + "=" +
                      payload.substr(0, payload.size() - 2));
    }
    return texts;
  }

  TestThreads threads_;
  PubSub pubsub_{1, threads_};
  ChangeListeners listeners_;
  KeyEvents events_{pubsub_, listeners_};
};

using Texts = std::vector<std::string>;

TEST_F(KeyEventsTest, AreOffAtFirst) {
  EXPECT_FALSE(listeners_.any());
  events_.notify(KeyEvent::kSet, 0, "k");
  EXPECT_TRUE(taken().empty());
}

TEST_F(KeyEventsTest, GoToTheKeysChannelFirstThenToTheEvents) {
  events_.choose(kEventsByKey | kEventsByEvent | kStringEvents);
  EXPECT_TRUE(listeners_.has(ChangeListeners::kEvents));
  events_.notify(KeyEvent::kSet, 3, "a key");
  EXPECT_EQ(taken(), (Texts{"__keyspace@3__:a key=set", "__keyevent@3__:set=a key"}));
}

TEST_F(KeyEventsTest, EventsOfOtherClassesAreNotPublished) {
  events_.choose(kEventsByEvent | kExpiredEvents);
  events_.notify(KeyEvent::kSet, 0, "k");
  events_.notify(KeyEvent::kDel, 0, "k");
  events_.notify(KeyEvent::kExpired, 0, "k");
  EXPECT_EQ(taken(), (Texts{"__keyevent@0__:expired=k"}));
}

TEST_F(KeyEventsTest, OfFiltersBelongToTwoClasses) {
  for (const uint32_t event_class : {kGenericEvents, kModuleEvents}) {
    events_.choose(kEventsByEvent | event_class);
    events_.notify(KeyEvent::kBloomAdd, 0, "f");
    EXPECT_EQ(taken(), (Texts{"__keyevent@0__:bloom.add=f"}));
  }
}

TEST_F(KeyEventsTest, WithoutChannelOrClassNoListenerIsSet) {
  for (const uint32_t classes : {uint32_t{kEventsByKey}, uint32_t{kStringEvents}, 0U}) {
    events_.choose(kEventsByKey | kStringEvents);
    events_.choose(classes);
    EXPECT_FALSE(listeners_.any()) << classes;
    EXPECT_FALSE(events_.is_on());
  }
}

TEST_F(KeyEventsTest, LeaveTheBitsOfOthersAlone) {
  listeners_.set(ChangeListeners::kOwnChanges, true);
  events_.choose(kEventsByKey | kStringEvents);
  events_.choose(0);
  EXPECT_TRUE(listeners_.has(ChangeListeners::kOwnChanges));
  EXPECT_FALSE(listeners_.has(ChangeListeners::kEvents));
}

TEST_F(KeyEventsTest, WithoutSubscribersNothingIsPublished) {
  pubsub_.unsubscribe(SubscriptionKind::kPattern, "*", 1);
  EXPECT_FALSE(pubsub_.has_listeners());
  events_.choose(kEventsByKey | kStringEvents);
  events_.notify(KeyEvent::kSet, 0, "k");
  EXPECT_TRUE(taken().empty());
  pubsub_.subscribe(SubscriptionKind::kShardChannel, "s", {1, 0});
  EXPECT_FALSE(pubsub_.has_listeners());
  pubsub_.subscribe(SubscriptionKind::kChannel, "__keyspace@0__:k", {1, 0});
  EXPECT_TRUE(pubsub_.has_listeners());
  events_.notify(KeyEvent::kSet, 0, "k");
  EXPECT_EQ(taken(), (Texts{"__keyspace@0__:k=set"}));
}

}  // namespace
}  // namespace server
