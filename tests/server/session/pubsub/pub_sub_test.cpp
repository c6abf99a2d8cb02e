// SPDX-License-Identifier: MIT
#include "server/session/pubsub/pub_sub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace server {
namespace {

using Kind = SubscriptionKind;

std::string text_of(const Message& message) {
  return "*" + message.head + *message.payload;
}

// Takes all deliveries in the inbox of a thread. Returns them as pairs (session, message text).
std::vector<std::pair<uint64_t, std::string>> take_all(PubSub& pubsub, size_t thread_index) {
  std::vector<std::pair<uint64_t, std::string>> taken;
  while (const auto delivery = pubsub.take(thread_index)) {
    for (const auto& receiver : delivery->receivers) {
      taken.emplace_back(receiver.session_id, text_of(*delivery->message));
    }
  }
  std::stable_sort(taken.begin(), taken.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return taken;
}

// Counts the wake-ups of each thread. Thread-safe.
struct CountingWaker final : MessageWaker {
  void wake_for_messages(size_t thread_index) override { ++wakes[thread_index]; }
  std::array<std::atomic<int>, 3> wakes{};
};

class PubSubTest : public ::testing::Test {
 protected:
  struct Waker final : MessageWaker {
    void wake_for_messages(size_t thread_index) override { woken.push_back(thread_index); }
    std::vector<size_t> woken;
  };

  Waker waker_;
  std::vector<size_t>& woken_ = waker_.woken;
  PubSub pubsub_{3, waker_};
};

TEST_F(PubSubTest, MessageReachesEverySubscribersThread) {
  pubsub_.subscribe(Kind::kChannel, "news", {1, 0});
  pubsub_.subscribe(Kind::kChannel, "news", {2, 2});
  pubsub_.subscribe(Kind::kChannel, "other", {3, 1});
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", "hi"), 2U);
  const std::string text = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n";
  EXPECT_EQ(woken_, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(take_all(pubsub_, 0), (std::vector<std::pair<uint64_t, std::string>>{{1, text}}));
  EXPECT_TRUE(take_all(pubsub_, 1).empty());
  EXPECT_EQ(take_all(pubsub_, 2), (std::vector<std::pair<uint64_t, std::string>>{{2, text}}));
}

// Replicas publish the messages of the stream in its order.
TEST(PubSubThreadsTest, TheStreamHasTheOrderOfTheSubscribers) {
  CountingWaker waker;
  PubSub pubsub(3, waker);
  pubsub.subscribe(Kind::kChannel, "c", {1, 0});
  pubsub.subscribe(Kind::kPattern, "*", {2, 1});
  std::vector<std::string> stream;
  const auto publish_all = [&](const std::string& name) {
    for (int i = 0; i < 1000; ++i) {
      const std::string text = name + std::to_string(i);
      pubsub.publish(Kind::kChannel, "c", text, [&] { stream.push_back(text); });
    }
  };
  std::thread other([&] { publish_all("b"); });
  publish_all("a");
  other.join();
  const auto messages = take_all(pubsub, 0);
  ASSERT_EQ(messages.size(), stream.size());
  for (size_t i = 0; i < stream.size(); ++i) {
    ASSERT_TRUE(messages[i].second.ends_with("\r\n" + stream[i] + "\r\n")) << i;
  }
}

TEST_F(PubSubTest, PatternsNameThemselvesAndTheChannel) {
  pubsub_.subscribe(Kind::kPattern, "n[ae]ws", {1, 0});
  pubsub_.subscribe(Kind::kPattern, "x*", {1, 0});
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", ""), 1U);
  EXPECT_EQ(take_all(pubsub_, 0),
            (std::vector<std::pair<uint64_t, std::string>>{
                {1, "*4\r\n$8\r\npmessage\r\n$7\r\nn[ae]ws\r\n$4\r\nnews\r\n$0\r\n\r\n"}}));
}

TEST_F(PubSubTest, PatternsComeAndGo) {
  pubsub_.subscribe(Kind::kPattern, "n*", {1, 0});
  pubsub_.subscribe(Kind::kPattern, "n*", {2, 1});
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", ""), 2U);
  pubsub_.subscribe(Kind::kPattern, "*s", {1, 0});
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", ""), 3U);
  pubsub_.unsubscribe(Kind::kPattern, "n*", 1);
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", ""), 2U);
  pubsub_.unsubscribe(Kind::kPattern, "n*", 2);
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", ""), 1U);
  pubsub_.subscribe(Kind::kPattern, "n*", {1, 0});
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", ""), 2U);
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "words", ""), 1U);
}

TEST_F(PubSubTest, ShardChannelsAreAWorldOfTheirOwn) {
  pubsub_.subscribe(Kind::kShardChannel, "news", {1, 0});
  pubsub_.subscribe(Kind::kPattern, "*", {2, 0});
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "news", "a"), 1U);
  EXPECT_EQ(pubsub_.publish(Kind::kShardChannel, "news", "b"), 1U);
  const auto taken = take_all(pubsub_, 0);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].second, "*3\r\n$8\r\nsmessage\r\n$4\r\nnews\r\n$1\r\nb\r\n");
  EXPECT_EQ(taken[1].second, "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$4\r\nnews\r\n$1\r\na\r\n");
}

TEST_F(PubSubTest, ThreadIsWokenOnceUntilItsInboxIsEmpty) {
  pubsub_.subscribe(Kind::kChannel, "c", {1, 1});
  pubsub_.publish(Kind::kChannel, "c", "1");
  pubsub_.publish(Kind::kChannel, "c", "2");
  EXPECT_EQ(woken_.size(), 1U);
  EXPECT_TRUE(pubsub_.take(1).has_value());
  pubsub_.publish(Kind::kChannel, "c", "3");
  EXPECT_EQ(woken_.size(), 1U);
  EXPECT_EQ(take_all(pubsub_, 1).size(), 2U);
  pubsub_.publish(Kind::kChannel, "c", "4");
  EXPECT_EQ(woken_.size(), 2U);
}

TEST_F(PubSubTest, NewSubscriptionGetsNoMessagesOfEndedOne) {
  SubscriptionFigures figures;
  Subscriptions subscriptions(figures);
  subscriptions.add(Kind::kChannel, "c", pubsub_.subscribe(Kind::kChannel, "c", {1, 0}));
  pubsub_.publish(Kind::kChannel, "c", "old");
  pubsub_.unsubscribe(Kind::kChannel, "c", 1);
  subscriptions.remove(Kind::kChannel, "c");
  subscriptions.add(Kind::kChannel, "c", pubsub_.subscribe(Kind::kChannel, "c", {1, 0}));
  pubsub_.publish(Kind::kChannel, "c", "new");
  const auto old = pubsub_.take(0);
  const auto fresh = pubsub_.take(0);
  ASSERT_TRUE(old && fresh);
  EXPECT_FALSE(subscriptions.contains(Kind::kChannel, "c", old->receivers[0].serial));
  EXPECT_TRUE(subscriptions.contains(Kind::kChannel, "c", fresh->receivers[0].serial));
}

TEST_F(PubSubTest, NamesLiveAsLongAsTheirSubscribers) {
  pubsub_.subscribe(Kind::kChannel, "ab", {1, 0});
  pubsub_.subscribe(Kind::kChannel, "ab", {2, 0});
  pubsub_.subscribe(Kind::kChannel, "b", {2, 0});
  EXPECT_EQ(pubsub_.names(Kind::kChannel, "a*"), (std::vector<std::string>{"ab"}));
  EXPECT_EQ(pubsub_.name_count(Kind::kChannel), 2U);
  EXPECT_EQ(pubsub_.subscriber_count(Kind::kChannel, "ab"), 2U);
  pubsub_.unsubscribe(Kind::kChannel, "ab", 1);
  EXPECT_EQ(pubsub_.subscriber_count(Kind::kChannel, "ab"), 1U);
  pubsub_.unsubscribe(Kind::kChannel, "ab", 2);
  EXPECT_EQ(pubsub_.subscriber_count(Kind::kChannel, "ab"), 0U);
  EXPECT_EQ(pubsub_.names(Kind::kChannel, std::nullopt), (std::vector<std::string>{"b"}));
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "ab", "x"), 0U);
}

TEST_F(PubSubTest, PublishersAreHeldBackWhileMuchIsOnItsWay) {
  pubsub_.subscribe(Kind::kChannel, "c", {1, 0});
  const std::string megabyte(1 << 20, 'x');
  size_t published = 0;
  for (; !pubsub_.is_congested(); ++published) {
    ASSERT_LT(published, 100U);
    pubsub_.publish(Kind::kChannel, "c", megabyte);
  }
  EXPECT_GT(published, 4U);
  take_all(pubsub_, 0);
  EXPECT_FALSE(pubsub_.is_congested());
}

// Four threads publish, and one thread reads each inbox. All inboxes must have the messages in the
// same order. In this order, the messages of one publisher must not be swapped.
TEST(PubSubThreadsTest, AllSubscribersSeeOneOrderOfMessages) {
  constexpr size_t kTakers = 3;
  constexpr int kPublishers = 4;
  constexpr int kMessages = 2000;
  CountingWaker waker;
  auto& wakes = waker.wakes;
  PubSub pubsub(kTakers, waker);
  for (size_t i = 0; i < kTakers; ++i) pubsub.subscribe(Kind::kChannel, "c", {i + 1, i});

  std::atomic<bool> is_over{false};
  std::array<std::vector<std::string>, kTakers> seen;
  std::vector<std::thread> takers;
  for (size_t i = 0; i < kTakers; ++i) {
    takers.emplace_back([&, i] {
      while (true) {
        const bool last_round = is_over;
        if (wakes[i].exchange(0) > 0 || last_round) {
          while (const auto delivery = pubsub.take(i)) {
            seen[i].push_back(*delivery->message->payload);
          }
        }
        if (last_round) return;
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> publishers;
  publishers.reserve(kPublishers);
  for (int p = 0; p < kPublishers; ++p) {
    publishers.emplace_back([&pubsub, p] {
      for (int i = 0; i < kMessages; ++i) {
        pubsub.publish(Kind::kChannel, "c", std::to_string(p) + " " + std::to_string(i));
      }
    });
  }
  // While messages are published, other clients subscribe to a pattern and unsubscribe again. No
  // message matches the pattern, so the expected number of messages is still exact.
  std::thread visitor([&pubsub] {
    for (uint64_t i = 0; i < kMessages; ++i) {
      pubsub.subscribe(Kind::kPattern, "x*", {100 + i, i % kTakers});
      pubsub.unsubscribe(Kind::kPattern, "x*", 100 + i);
    }
  });
  for (std::thread& thread : publishers) thread.join();
  visitor.join();
  is_over = true;
  for (std::thread& thread : takers) thread.join();

  ASSERT_EQ(seen[0].size(), static_cast<size_t>(kPublishers * kMessages));
  for (size_t i = 1; i < kTakers; ++i) EXPECT_EQ(seen[i], seen[0]);
  std::map<std::string, int> next;
  for (const std::string& text : seen[0]) {
    const std::string publisher = text.substr(0, 1);
    ASSERT_EQ(std::stoi(text.substr(2)), next[publisher]++) << "publisher " << publisher;
  }
  EXPECT_EQ(pubsub.name_count(Kind::kPattern), 0U);
}

// While messages are published, a client subscribes to a pattern and then to a matching channel,
// and unsubscribes in reverse order. For each published message it gets either the pattern's
// message alone, or both messages.
TEST(PubSubThreadsTest, MessageReachesAllPresentSubscribers) {
  constexpr uint64_t kVisits = 3000;
  CountingWaker waker;
  PubSub pubsub(1, waker);
  pubsub.subscribe(Kind::kPattern, "other*", {1, 0});
  std::atomic<bool> is_over{false};
  std::thread visitor([&] {
    for (uint64_t i = 2; i < kVisits; ++i) {
      pubsub.subscribe(Kind::kPattern, "c*", {i, 0});
      pubsub.subscribe(Kind::kChannel, "c", {i, 0});
      pubsub.unsubscribe(Kind::kChannel, "c", i);
      pubsub.unsubscribe(Kind::kPattern, "c*", i);
    }
    is_over = true;
  });
  while (!is_over) {
    pubsub.publish(Kind::kChannel, "c", "");
    std::map<uint64_t, std::vector<Kind>> taken;
    while (const auto delivery = pubsub.take(0)) {
      for (const auto& receiver : delivery->receivers) {
        taken[receiver.session_id].push_back(delivery->message->kind);
      }
    }
    for (const auto& [id, kinds] : taken) {
      EXPECT_EQ(kinds.back(), Kind::kPattern) << id;
      EXPECT_LE(kinds.size(), 2U) << id;
    }
  }
  visitor.join();
}

// Tests how the memory of a channel's entry is divided among the clients that subscribe to it.
class PubSubChargesTest : public PubSubTest {
 protected:
  std::array<PubSub::Account, 4> bytes_{};
};

TEST_F(PubSubChargesTest, TheFirstSubscriberPaysForTheEntry) {
  pubsub_.subscribe(Kind::kChannel, "c", {2, 0}, &bytes_[2]);
  const uint64_t whole = bytes_[2];
  EXPECT_GT(whole, 100U);
  pubsub_.subscribe(Kind::kChannel, "c", {1, 0}, &bytes_[1]);
  pubsub_.subscribe(Kind::kChannel, "c", {3, 0}, &bytes_[3]);
  const uint64_t place = bytes_[3];
  EXPECT_LT(place, 50U);
  EXPECT_EQ(bytes_[1] + bytes_[2] + bytes_[3], whole + 2 * place);
  pubsub_.unsubscribe(Kind::kChannel, "c", 1);
  EXPECT_EQ(bytes_[1], 0U);
  EXPECT_EQ(bytes_[2] + bytes_[3], whole + place);
  pubsub_.unsubscribe(Kind::kChannel, "c", 2);
  EXPECT_EQ(bytes_[2], 0U);
  EXPECT_EQ(bytes_[3], whole);
  pubsub_.unsubscribe(Kind::kChannel, "c", 3);
  EXPECT_EQ(bytes_[3], 0U);
}

TEST_F(PubSubChargesTest, ManySubscribersOfOneChannelAreFound) {
  constexpr uint64_t kCount = 1000;
  // The sessions subscribe in an order that is neither ascending nor descending by id.
  for (uint64_t i = 0; i < kCount; ++i) {
    pubsub_.subscribe(Kind::kChannel, "c", {1 + i * 7 % kCount, 0}, bytes_.data());
  }
  EXPECT_EQ(pubsub_.publish(Kind::kChannel, "c", "text"), kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(pubsub_.subscriber_count(Kind::kChannel, "c"), kCount - i);
    pubsub_.unsubscribe(Kind::kChannel, "c", 1 + i * 3 % kCount);
  }
  EXPECT_EQ(bytes_[0], 0U);
  EXPECT_EQ(pubsub_.name_count(Kind::kChannel), 0U);
}

TEST(PubSubThreadsTest, MatchingPatternsBlocksNoThread) {
  CountingWaker waker;
  PubSub pubsub(1, waker);
  // Matching this pattern with the channel takes the maximum number of steps.
  std::string pattern = "*";
  for (int i = 0; i < 50; ++i) pattern += "[ac]";
  pubsub.subscribe(Kind::kPattern, pattern + "b*", {1, 0});
  const std::string channel(2'000'000, 'a');
  constexpr int kVisitsWanted = 1000;
  // On a busy machine, the main thread might not run at all during one call of publish(). So the
  // publisher thread calls publish() up to this many times.
  constexpr int kRoundsMax = 200;
  std::atomic<bool> is_over{false};
  std::atomic<int> visits{0};
  int visits_max = 0;  // maximum number of subscriptions during one call of publish()
  std::thread publisher([&] {
    for (int round = 0; round < kRoundsMax && visits_max <= kVisitsWanted; ++round) {
      const int before = visits;
      EXPECT_EQ(pubsub.publish(Kind::kChannel, channel, ""), 0U);
      visits_max = std::max(visits_max, visits - before);
    }
    is_over = true;
  });
  while (!is_over) {
    pubsub.subscribe(Kind::kChannel, "c", {2, 0});
    pubsub.unsubscribe(Kind::kChannel, "c", 2);
    ++visits;
  }
  publisher.join();
  EXPECT_GT(visits_max, kVisitsWanted);
}

}  // namespace
}  // namespace server
