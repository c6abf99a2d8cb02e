// SPDX-License-Identifier: MIT
//
// PubSub: who listens to which channel, and the messages on their way to them.
//
// publish() puts a message into the inbox of every I/O thread that has a subscriber; that thread
// takes it out and writes it to its connections. A subscriber may have unsubscribed meanwhile, so
// the taker asks the session whether it still holds the subscription of the message's serial.
//
// Invariants: all subscribers get the messages that they share in the same order, whoever
// published them. What waits in the inboxes is bounded, for commands that publish are held back
// while is_congested().
// Thread safety: all members may be called from any thread, take() of one inbox by one at a time.
// No lock is held while anything is sent, while patterns are matched, nor when the waker is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/glob.h"
#include "server/pubsub/subscriptions.h"

namespace server {

// What is sent to the subscribers of one channel or pattern: a type byte ('*', or '>' in RESP3),
// the head, the payload.
struct Message {
  SubscriptionKind kind;
  std::string name;  // of the subscription: for patterns not the channel's
  std::string head;
  std::shared_ptr<const std::string> payload;  // ends the bulk string that the head has begun

  size_t size_bytes() const { return 1 + head.size() + payload->size(); }
};

// What clients that cache keys are told: that these keys have changed.
struct Invalidation {
  std::string keys;           // an array of RESP; empty for all keys there are
  uint64_t writer = 0;        // the session that has changed them; 0 when that does not matter
  bool is_broadcast = false;  // for a prefix; else for who has read them
};

// A message and its receivers on one thread.
struct Delivery {
  struct Receiver {
    uint64_t session_id;
    uint64_t serial = 0;  // of the subscription; none for an invalidation
  };
  std::shared_ptr<const Message> message{};  // or else
  std::shared_ptr<const Invalidation> invalidation{};
  std::vector<Receiver> receivers{};
  bool is_redirected = false;  // an invalidation for another client

  size_t memory_bytes() const {
    const size_t size = message != nullptr ? message->size_bytes() : invalidation->keys.size();
    return size + receivers.size() * sizeof(Receiver);
  }
};

class MessageWaker {
 public:
  // Has the thread take() its messages soon, until there are none.
  virtual void wake_for_messages(size_t thread_index) = 0;

 protected:
  ~MessageWaker() = default;
};

class PubSub {
 public:
  struct Subscriber {
    uint64_t session_id;
    size_t thread_index;
  };
  using ChannelCount = std::pair<std::string, size_t>;

  PubSub(size_t thread_count, MessageWaker& waker);

  // The memory that a client's subscriptions take here; it must live until they have ended.
  using Account = std::atomic<uint64_t>;
  // The serial of the new subscription. REQUIRES: the session does not hold this one.
  uint64_t subscribe(SubscriptionKind kind, std::string_view name, const Subscriber& subscriber,
                     Account* account = nullptr);
  void unsubscribe(SubscriptionKind kind, std::string_view name, uint64_t session_id);

  // How many subscriptions the message goes to: those of the channel and, unless it is a shard
  // channel, of every pattern that matches it. REQUIRES: kind is not kPattern.
  size_t publish(SubscriptionKind kind, std::string_view channel, std::string_view payload);

  // Whether anybody listens to a channel or a pattern: the answer is of a moment ago.
  bool has_listeners() const { return listened_names_.load(std::memory_order_relaxed) != 0; }

  // Puts something else into the thread's inbox, behind the messages.
  void post(size_t thread_index, Delivery delivery);
  // Has the thread look for what it has to do.
  void wake(size_t thread_index) { waker_.wake_for_messages(thread_index); }

  // The oldest message for the thread. After nothing was left, the waker announces the next.
  std::optional<Delivery> take(size_t thread_index);
  // The invalidations for one session, whatever lies before them; those that other clients redirect
  // to it stay.
  std::vector<std::shared_ptr<const Invalidation>> take_invalidations(size_t thread_index,
                                                                      uint64_t session_id);
  bool is_congested() const {
    return pending_bytes_.load(std::memory_order_relaxed) > kPendingBytesMax;
  }

  // Names with at least one subscriber; an absent pattern means all.
  std::vector<std::string> names(SubscriptionKind kind,
                                 std::optional<std::string_view> pattern) const;
  size_t name_count(SubscriptionKind kind) const;
  // Returns the subscriptions of the sessions of these ids, which are in ascending order.
  struct Subscription {
    uint64_t session_id;
    SubscriptionKind kind;
    std::string name;
  };
  std::vector<Subscription> subscriptions_of(const std::vector<uint64_t>& session_ids) const;
  size_t subscriber_count(SubscriptionKind kind, std::string_view name) const;

 private:
  struct Listener {
    uint64_t session_id;
    size_t thread_index;
    uint64_t serial;
    Account* account;

    void charge(uint64_t bytes) const {
      if (account != nullptr) account->fetch_add(bytes, std::memory_order_relaxed);
    }
  };
  using Subscribers = std::vector<Listener>;  // by session id
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  struct Pattern {
    std::string name;
    core::Glob glob;
    uint64_t serial = 0;  // of its first subscription
  };
  using Patterns = std::vector<std::shared_ptr<const Pattern>>;
  // Invariants: each subscriber is charged for its place, the first one for the rest as well.
  struct Listeners {
    Subscribers subscribers;
    std::shared_ptr<const Pattern> pattern;  // of kPattern only
    uint64_t shared_bytes = 0;

    void add(const Listener& listener);
    void remove(uint64_t session_id);

   private:
    Subscribers::iterator place_of(uint64_t session_id);
    void charge_first(uint64_t bytes) const;
  };
  using ByName = std::unordered_map<std::string, Listeners, NameHash, std::equal_to<>>;

  struct Inbox {
    std::mutex mutex;  // guards the rest; taken last
    std::deque<Delivery> deliveries;
    bool is_awake = false;  // its thread was woken and has not yet found it empty
  };

  ByName& at(SubscriptionKind kind) { return names_[static_cast<size_t>(kind)]; }
  const ByName& at(SubscriptionKind kind) const { return names_[static_cast<size_t>(kind)]; }
  // Those of all patterns that match, found while `lock` is released. It holds mutex_ before and
  // after, and all that have a subscriber then are judged; only when they have changed in each of
  // many rounds the newest ones are left out, as if they had come behind the message.
  Patterns matching_patterns(std::string_view channel, std::unique_lock<std::mutex>& lock);
  static uint64_t shared_bytes_of(const std::string& name, const Pattern* pattern);
  // REQUIRES: mutex_.
  void count_names();
  std::shared_ptr<const Patterns> all_patterns();
  // Whether the thread slept, and must be woken.
  bool put(size_t thread_index, Delivery delivery);
  // Puts the message into the inboxes; marks the threads that sleep. REQUIRES: mutex_.
  void hand_out(std::shared_ptr<const Message> message, const Subscribers& subscribers,
                std::vector<bool>& sleeping);

  // Above this, who publishes waits for the subscribers' threads.
  static constexpr size_t kPendingBytesMax = size_t{16} << 20;

  // Guards names_, patterns_ and last_serial_, and makes the order of messages the same in all
  // inboxes.
  mutable std::mutex mutex_;
  std::array<ByName, kSubscriptionKindCount> names_;
  std::shared_ptr<const Patterns> patterns_;  // all; nothing after a change, until it is asked for
  uint64_t last_serial_ = 0;
  MessageWaker& waker_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;  // by thread index
  std::atomic<size_t> pending_bytes_{0};
  std::atomic<size_t> listened_names_{0};  // channels and patterns
};

}  // namespace server
