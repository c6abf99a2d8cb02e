// SPDX-License-Identifier: MIT
#include "server/session/pubsub/tracking.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "server/base/process/server_state.h"

namespace server {
namespace {

using Texts = std::vector<std::string>;

class TrackingTest : public ::testing::Test {
 protected:
  struct Waker final : MessageWaker {
    void wake_for_messages(size_t thread_index) override { woken.push_back(thread_index); }
    std::vector<size_t> woken;
  };

  TrackingTest() {
    tracking_.begin(kFirst, false);
    tracking_.begin(kSecond, false);
  }

  static Tracking::Key key(std::string_view name) {
    return {name, std::hash<std::string_view>{}(name)};
  }
  void add_prefix(std::string_view prefix, uint64_t session_id) {
    tracking_.add_prefixes({&prefix, 1}, session_id);
  }
  void change(std::string_view name, const Tracking::Client& writer = {}) {
    tracking_.invalidate(key(name), writer);
  }

  // Returns "session: keys" for each invalidation in the thread's inbox. A space replaces each
  // CR LF.
  Texts taken(size_t thread_index) {
    tracking_.send_broadcasts(thread_index);
    Texts texts;
    while (const auto delivery = pubsub_.take(thread_index)) {
      std::string keys = delivery->invalidation->keys;
      for (size_t at = keys.find("\r\n"); at != keys.npos; at = keys.find("\r\n")) {
        keys.replace(at, 2, " ");
      }
      for (const auto& receiver : delivery->receivers) {
        texts.push_back(std::to_string(receiver.session_id) + ": " + keys);
      }
    }
    return texts;
  }

  static constexpr Tracking::Client kFirst{1, 0};
  static constexpr Tracking::Client kSecond{2, 1};

  Waker waker_;
  PubSub pubsub_{2, waker_};
  ServerState state_;
  Tracking tracking_{pubsub_, state_, 2};
};

TEST_F(TrackingTest, ListensWhileAClientTracks) {
  EXPECT_TRUE(state_.listeners.has(ChangeListeners::kTracking));
  EXPECT_EQ(state_.tracking.clients, 2U);
  tracking_.end(kFirst.session_id);
  tracking_.end(99);
  tracking_.forget(98);
  EXPECT_EQ(state_.tracking.clients, 1U);
  tracking_.forget(kSecond.session_id);
  EXPECT_EQ(state_.tracking.clients, 0U);
  // The keys that the first client has read stay recorded. If the client enables tracking again, it
  // must receive the invalidations of these keys.
  EXPECT_TRUE(state_.listeners.any());
  tracking_.forget(kFirst.session_id);
  EXPECT_FALSE(state_.listeners.any());
  EXPECT_EQ(state_.tracking.clients, 0U);
}

TEST_F(TrackingTest, EveryReaderIsNotifiedOnceOnItsThread) {
  tracking_.remember(key("k"), kFirst);
  tracking_.remember(key("k"), kFirst);
  tracking_.remember(key("k"), kSecond);
  tracking_.remember(key("l"), kFirst);
  EXPECT_EQ(state_.tracking.keys, 2U);
  EXPECT_EQ(state_.tracking.items, 3U);
  change("k");
  EXPECT_EQ(waker_.woken, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(taken(0), (Texts{"1: *1 $1 k "}));
  EXPECT_EQ(taken(1), (Texts{"2: *1 $1 k "}));
  EXPECT_EQ(state_.tracking.keys, 1U);
  EXPECT_EQ(state_.tracking.items, 1U);
  change("k");
  EXPECT_TRUE(taken(0).empty());
}

TEST_F(TrackingTest, TheWriterIsNamed) {
  tracking_.remember(key("k"), kFirst);
  change("k", kSecond);
  const auto delivery = pubsub_.take(0);
  ASSERT_TRUE(delivery);
  EXPECT_EQ(delivery->invalidation->writer, kSecond.session_id);
  EXPECT_FALSE(delivery->invalidation->is_broadcast);
}

TEST_F(TrackingTest, AFlushTellsEverybodyAndEmptiesTheTable) {
  tracking_.remember(key("k"), kFirst);
  tracking_.invalidate_all();
  EXPECT_EQ(taken(0), (Texts{"1: "}));
  EXPECT_EQ(taken(1), (Texts{"2: "}));
  EXPECT_EQ(state_.tracking.keys, 0U);
  EXPECT_EQ(state_.tracking.items, 0U);
}

TEST_F(TrackingTest, TheLastClientThatGoesEmptiesTheTable) {
  tracking_.remember(key("k"), kFirst);
  tracking_.forget(kFirst.session_id);
  tracking_.end(kSecond.session_id);
  EXPECT_EQ(state_.tracking.keys, 1U);
  tracking_.forget(kSecond.session_id);
  EXPECT_EQ(state_.tracking.keys, 0U);
  EXPECT_EQ(state_.tracking.items, 0U);
}

TEST_F(TrackingTest, PrefixChangesCollectOnTheWritersThread) {
  add_prefix("a", kFirst.session_id);
  add_prefix("ab", kSecond.session_id);
  EXPECT_EQ(state_.tracking.prefixes, 2U);
  for (const char* name : {"ac", "b", "abc", "ab", "abc"}) change(name, {9, 1});
  // A thread is woken once, however many keys changed.
  EXPECT_EQ(waker_.woken, (std::vector<size_t>{1}));
  tracking_.send_broadcasts(0);
  EXPECT_TRUE(taken(0).empty());
  EXPECT_EQ(taken(1), (Texts{"2: *2 $2 ab $3 abc "}));
  EXPECT_EQ(taken(0), (Texts{"1: *3 $2 ab $3 abc $2 ac "}));
  EXPECT_TRUE(taken(1).empty());
}

TEST_F(TrackingTest, AnEmptyPrefixIsThatOfAllKeys) {
  add_prefix("", kFirst.session_id);
  change("");
  change("\xff");
  EXPECT_EQ(taken(0), (Texts{"1: *2 $0  $1 \xff "}));
}

TEST_F(TrackingTest, NoLoopLeavesOwnKeysOut) {
  tracking_.begin(kFirst, true);
  add_prefix("", kFirst.session_id);
  add_prefix("", kSecond.session_id);
  EXPECT_EQ(state_.tracking.prefixes, 1U);
  change("mine", kFirst);
  change("ours", kFirst);
  change("ours", {2, 0});
  change("theirs", {2, 0});
  EXPECT_EQ(taken(0), (Texts{"1: *2 $4 ours $6 theirs "}));
  EXPECT_EQ(taken(1), (Texts{"2: *3 $4 mine $4 ours $6 theirs "}));
  change("mine", kFirst);
  EXPECT_TRUE(taken(0).empty());
}

TEST_F(TrackingTest, APrefixEndsWithItsLastClient) {
  add_prefix("a", kFirst.session_id);
  add_prefix("a", kSecond.session_id);
  tracking_.end(kFirst.session_id);
  EXPECT_EQ(state_.tracking.prefixes, 1U);
  change("a");
  EXPECT_TRUE(taken(0).empty());
  EXPECT_EQ(taken(1), (Texts{"2: *1 $1 a "}));
  tracking_.end(kSecond.session_id);
  EXPECT_EQ(state_.tracking.prefixes, 0U);
}

TEST_F(TrackingTest, EachPrefixOfAKeyGetsIt) {
  std::mt19937_64 random(1);
  const auto word = [&](size_t most) {
    std::string text(random() % (most + 1), 'a');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> prefixes;
    const size_t count = random() % 20 + 1;
    for (size_t i = 0; i < count; ++i) prefixes.insert(word(5));
    const std::vector<std::string_view> views(prefixes.begin(), prefixes.end());
    tracking_.begin(kFirst, false);
    tracking_.add_prefixes(views, kFirst.session_id);
    std::set<std::string> keys;
    for (int i = 0; i < 10; ++i) keys.insert(word(8));
    for (const std::string& name : keys) change(name);
    Texts expected;
    for (const std::string& prefix : prefixes) {
      std::string text;
      size_t found = 0;
      for (const std::string& name : keys) {
        if (!name.starts_with(prefix)) continue;
        text += fmt::format("${} {} ", name.size(), name);
        ++found;
      }
      if (found > 0) expected.push_back(fmt::format("1: *{} {}", found, text));
    }
    EXPECT_EQ(taken(0), expected) << fmt::format("round {}: {}", round, fmt::join(prefixes, ","));
    tracking_.end(kFirst.session_id);
  }
}

TEST_F(TrackingTest, KeysAboveTheLimitAreDroppedAndSent) {
  tracking_.set_limit(10);
  for (int i = 0; i < 1000; ++i) tracking_.remember(key("k" + std::to_string(i)), kFirst);
  EXPECT_EQ(state_.tracking.keys, 10U);
  const Texts invalidated = taken(0);
  EXPECT_EQ(std::set<std::string>(invalidated.begin(), invalidated.end()).size(), 990U);
  tracking_.set_limit(0);
  for (int i = 0; i < 1000; ++i) tracking_.remember(key("m" + std::to_string(i)), kFirst);
  EXPECT_EQ(state_.tracking.keys, 1010U);
  tracking_.set_limit(500);
  tracking_.trim(100);
  EXPECT_EQ(state_.tracking.keys, 910U);
  tracking_.trim(10000);
  EXPECT_EQ(state_.tracking.keys, 500U);
}

}  // namespace
}  // namespace server
