// SPDX-License-Identifier: MIT
//
// PubSub: the subscribers of channels and patterns, and the delivery of messages to them.
//
// publish() puts a message into the inbox of every I/O thread that has a subscriber. That thread
// takes the message and writes it to the connections of the subscribers. A client may have
// unsubscribed in the meantime. So the thread checks that the session still holds the subscription
// with the message's serial.
//
// Invariants: all subscribers receive the messages they share in the same order, whichever client
// published them. The inboxes are bounded, because commands that publish are held back while
// is_congested().
// Thread safety: all members may be called from any thread. take() of one inbox must not be called
// concurrently. No lock is held while messages are sent, patterns are matched, or the waker is
// called.
#pragma once

#include <array>
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
#include "core/name_hash.h"
#include "server/session/pubsub/subscriptions.h"

namespace server {

// Message: the message to the subscribers of one channel or pattern. It consists of a type byte
// ('*', or '>' in RESP3), the head and the payload.
struct Message {
  SubscriptionKind kind;
  std::string name;  // name of the subscription; for a pattern it is the pattern, not the channel
  std::string head;
  // The payload, and the CRLF that ends the payload's bulk string. `head` ends with the header of
  // this bulk string: its length.
  std::shared_ptr<const std::string> payload;

  size_t size_bytes() const { return 1 + head.size() + payload->size(); }
};

// An invalidation: clients that cache these keys are notified that the keys have changed.
struct Invalidation {
  std::string keys;     // keys as a RESP array; empty if all keys were deleted
  uint64_t writer = 0;  // id of the session that changed the keys, for NOLOOP; 0: none

  // True if the invalidation is for clients with a matching prefix (BCAST). Otherwise it is for
  // clients that have read the keys.
  bool is_broadcast = false;
};

// Delivery: a message or an invalidation, and its receivers on one thread.
struct Delivery {
  struct Receiver {
    uint64_t session_id;
    uint64_t serial = 0;  // serial of the receiver's subscription; unused for an invalidation
  };
  std::shared_ptr<const Message> message{};  // the message; null if this is an invalidation
  std::shared_ptr<const Invalidation> invalidation{};
  std::vector<Receiver> receivers{};
  bool is_redirected = false;  // true for an invalidation that was redirected from another client

  size_t memory_bytes() const {
    const size_t size = message != nullptr ? message->size_bytes() : invalidation->keys.size();
    return size + receivers.size() * sizeof(Receiver);
  }
};

// Appends the value as a bulk string of RESP.
void append_bulk(std::string& text, std::string_view value);

class MessageWaker {
 public:
  // Notifies the thread that its inbox has messages. The thread then calls take() repeatedly, until
  // the inbox is empty.
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

  PubSub(size_t thread_count, MessageWaker& waker);

  // Account: a counter of the memory that a client's subscriptions need in the tables of PubSub. It
  // must outlive the subscriptions.
  using Account = std::atomic<uint64_t>;
  // Adds a subscription, and returns its serial. REQUIRES: the session does not hold this
  // subscription.
  uint64_t subscribe(SubscriptionKind kind, std::string_view name, const Subscriber& subscriber,
                     Account* account = nullptr);
  void unsubscribe(SubscriptionKind kind, std::string_view name, uint64_t session_id);

  // Delivers a message to the channel's subscriptions and, unless it is a shard channel, to those
  // of all matching patterns. Returns the number of these subscriptions. REQUIRES: kind is not
  // kPattern.
  // `in_order` is called once, while no other message can be published, or may be null. A stream to
  // which it appends the message has the same order of messages as the subscribers get. Inside EXEC
  // it cannot append yet, so there the orders may differ.
  size_t publish(SubscriptionKind kind, std::string_view channel, std::string_view payload,
                 const std::function<void()>& in_order = nullptr);

  // Returns whether any channel or pattern has a subscriber. The result may be slightly out of
  // date.
  bool has_listeners() const { return listened_names_.load(std::memory_order_relaxed) != 0; }

  // Appends a delivery, such as an invalidation, to the thread's inbox, and wakes the thread.
  void post(size_t thread_index, Delivery delivery);
  // Wakes the thread with this index, so that it processes its inbox.
  void wake(size_t thread_index) { waker_.wake_for_messages(thread_index); }

  // Removes and returns the oldest message for the thread. Returns nullopt if there is none; the
  // waker is then called when the next message arrives.
  std::optional<Delivery> take(size_t thread_index);
  // Removes and returns the invalidations for one session from the thread's inbox. All other
  // messages stay, even earlier ones, and so do invalidations that other clients redirect to this
  // session.
  std::vector<std::shared_ptr<const Invalidation>> take_invalidations(size_t thread_index,
                                                                      uint64_t session_id);
  bool is_congested() const {
    return pending_bytes_.load(std::memory_order_relaxed) > kPendingBytesMax;
  }

  // Returns the names with at least one subscriber that match the pattern. Without a pattern,
  // returns all names.
  std::vector<std::string> names(SubscriptionKind kind,
                                 std::optional<std::string_view> pattern) const;
  size_t name_count(SubscriptionKind kind) const;
  // Returns the subscriptions of these sessions. REQUIRES: the ids are in ascending order.
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
  using Subscribers = std::vector<Listener>;  // subscribers, sorted by session id
  struct Pattern {
    std::string name;
    core::Glob glob;
    uint64_t serial = 0;  // serial of the pattern's first subscription
  };
  using Patterns = std::vector<std::shared_ptr<const Pattern>>;
  // Invariants: each subscriber is charged for its own entry in the tables. The first subscriber of
  // a name is also charged for the memory that all subscribers of the name use together.
  struct Listeners {
    Subscribers subscribers;
    std::shared_ptr<const Pattern> pattern;  // the compiled pattern, for kPattern
    uint64_t shared_bytes = 0;

    void add(const Listener& listener);
    void remove(uint64_t session_id);

   private:
    Subscribers::iterator place_of(uint64_t session_id);
    void charge_first(uint64_t bytes) const;
  };
  using ByName = std::unordered_map<std::string, Listeners, core::NameHash, std::equal_to<>>;

  struct Inbox {
    std::mutex mutex;  // this mutex guards the inbox; locked after mutex_
    std::deque<Delivery> deliveries;
    bool is_awake = false;  // true from the thread's wakeup until it finds its inbox empty
  };

  ByName& at(SubscriptionKind kind) { return names_[static_cast<size_t>(kind)]; }
  const ByName& at(SubscriptionKind kind) const { return names_[static_cast<size_t>(kind)]; }
  // Finds the patterns that match the channel. mutex_ is locked by `lock` before and after the
  // call, and unlocked while patterns are matched. All patterns that have a subscriber when the
  // function returns have been matched. If the patterns change again and again during the call, the
  // newest patterns are left out, as if their clients had subscribed after the message.
  Patterns matching_patterns(std::string_view channel, std::unique_lock<std::mutex>& lock);
  static uint64_t shared_bytes_of(const std::string& name, const Pattern* pattern);
  // Updates listened_names_ after a change. REQUIRES: the caller holds mutex_.
  void count_names();
  std::shared_ptr<const Patterns> all_patterns();
  // Puts the delivery into the thread's inbox. Returns whether the thread was asleep and must be
  // woken.
  bool put(size_t thread_index, Delivery delivery);
  // Puts the message into the inboxes of the subscribers' threads. Sets sleeping[i] if thread i was
  // asleep and must be woken. REQUIRES: the caller holds mutex_.
  void hand_out(std::shared_ptr<const Message> message, const Subscribers& subscribers,
                std::vector<bool>& sleeping);

  // If the inboxes together hold more bytes than this, clients that publish wait until the
  // subscribers' threads have taken messages.
  static constexpr size_t kPendingBytesMax = size_t{16} << 20;

  // Guards names_, patterns_ and last_serial_. Published messages are put into the inboxes under
  // this mutex, so all inboxes have them in the same order.
  mutable std::mutex mutex_;
  std::array<ByName, kSubscriptionKindCount> names_;
  // List of all patterns. A change of the patterns sets it to null, and the next use creates it
  // again.
  std::shared_ptr<const Patterns> patterns_;
  uint64_t last_serial_ = 0;
  MessageWaker& waker_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;  // the inboxes, indexed by thread
  std::atomic<size_t> pending_bytes_{0};
  std::atomic<size_t> listened_names_{0};  // number of channels and patterns with subscribers
};

}  // namespace server
