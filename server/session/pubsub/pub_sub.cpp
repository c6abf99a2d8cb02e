// SPDX-License-Identifier: MIT
#include "server/session/pubsub/pub_sub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace server {
namespace {

// Returns the part of the message between its type byte and the payload's bytes. `pattern` is empty
// except for kPattern.
std::string head_of(SubscriptionKind kind, std::string_view pattern, std::string_view channel,
                    size_t payload_bytes) {
  const bool has_pattern = kind == SubscriptionKind::kPattern;
  std::string head = has_pattern ? "4\r\n" : "3\r\n";
  if (has_pattern) {
    append_bulk(head, "pmessage");
    append_bulk(head, pattern);
  } else {
    append_bulk(head, kind == SubscriptionKind::kShardChannel ? "smessage" : "message");
  }
  append_bulk(head, channel);
  fmt::format_to(std::back_inserter(head), "${}\r\n", payload_bytes);
  return head;
}

}  // namespace

void append_bulk(std::string& text, std::string_view value) {
  fmt::format_to(std::back_inserter(text), "${}\r\n", value.size());
  text.append(value).append("\r\n");
}

PubSub::PubSub(size_t thread_count, MessageWaker& waker) : waker_(waker) {
  for (size_t i = 0; i < thread_count; ++i) inboxes_.push_back(std::make_unique<Inbox>());
}

PubSub::Subscribers::iterator PubSub::Listeners::place_of(uint64_t session_id) {
  return std::ranges::lower_bound(subscribers, session_id, {}, &Listener::session_id);
}

void PubSub::Listeners::charge_first(uint64_t bytes) const {
  if (!subscribers.empty()) subscribers.front().charge(bytes);
}

void PubSub::Listeners::add(const Listener& listener) {
  // The capacity of the list of subscribers grows only by an eighth, because unused capacity is not
  // charged to any client.
  constexpr size_t kGrowthPart = 8;
  const size_t count = subscribers.size();
  if (count == subscribers.capacity()) subscribers.reserve(count + 1 + count / kGrowthPart);
  charge_first(-shared_bytes);
  subscribers.insert(place_of(listener.session_id), listener);
  charge_first(shared_bytes);
  listener.charge(sizeof(Listener));
}

void PubSub::Listeners::remove(uint64_t session_id) {
  const auto found = place_of(session_id);
  if (found == subscribers.end() || found->session_id != session_id) return;
  charge_first(-shared_bytes);
  found->charge(-uint64_t{sizeof(Listener)});
  subscribers.erase(found);
  charge_first(shared_bytes);
  if (subscribers.size() < subscribers.capacity() / 2) subscribers.shrink_to_fit();
}

uint64_t PubSub::shared_bytes_of(const std::string& name, const Pattern* pattern) {
  using core::allocation_size;
  using core::text_bytes;
  // A node of the hash table has a link and the hash in addition to its value. The table has one to
  // two buckets per node, so 1.5 buckets are counted.
  constexpr size_t kNode = 2 * sizeof(void*) + sizeof(ByName::value_type);
  constexpr size_t kBuckets = 3 * sizeof(void*) / 2;
  const uint64_t bytes = allocation_size(kNode) + kBuckets + text_bytes(name);
  if (pattern == nullptr) return bytes;
  // The memory of a pattern: the object, the control block of its shared pointer, and its place in
  // the list of all patterns.
  constexpr size_t kShared = 2 * sizeof(void*) + sizeof(Pattern);
  return bytes + allocation_size(kShared) + text_bytes(pattern->name) +
         pattern->glob.memory_bytes() + sizeof(Patterns::value_type);
}

uint64_t PubSub::subscribe(SubscriptionKind kind, std::string_view name,
                           const Subscriber& subscriber, Account* account) {
  assert(subscriber.thread_index < inboxes_.size());
  std::shared_ptr<Pattern> pattern;
  if (kind == SubscriptionKind::kPattern) {
    pattern = std::make_shared<Pattern>(Pattern{std::string(name), core::Glob(name)});
  }
  const std::scoped_lock lock(mutex_);
  const uint64_t serial = ++last_serial_;
  const auto entry = at(kind).try_emplace(std::string(name)).first;
  Listeners& listeners = entry->second;
  if (listeners.subscribers.empty()) {
    listeners.shared_bytes = shared_bytes_of(entry->first, pattern.get());
    if (pattern != nullptr) pattern->serial = serial;
    listeners.pattern = std::move(pattern);
    if (kind == SubscriptionKind::kPattern) patterns_ = nullptr;
  }
  listeners.add({subscriber.session_id, subscriber.thread_index, serial, account});
  count_names();
  return serial;
}

void PubSub::unsubscribe(SubscriptionKind kind, std::string_view name, uint64_t session_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = at(kind).find(name);
  if (found == at(kind).end()) return;
  found->second.remove(session_id);
  if (!found->second.subscribers.empty()) return;
  at(kind).erase(found);
  count_names();
  if (kind == SubscriptionKind::kPattern) patterns_ = nullptr;
}

void PubSub::count_names() {
  listened_names_.store(
      at(SubscriptionKind::kChannel).size() + at(SubscriptionKind::kPattern).size(),
      std::memory_order_relaxed);
}

std::shared_ptr<const PubSub::Patterns> PubSub::all_patterns() {
  if (patterns_ == nullptr) {
    auto patterns = std::make_shared<Patterns>();
    for (const auto& [name, listeners] : at(SubscriptionKind::kPattern)) {
      patterns->push_back(listeners.pattern);
    }
    patterns_ = std::move(patterns);
  }
  return patterns_;
}

PubSub::Patterns PubSub::matching_patterns(std::string_view channel,
                                           std::unique_lock<std::mutex>& lock) {
  constexpr int kRoundsMax = 16;
  Patterns matching;
  std::shared_ptr<const Patterns> judged;
  uint64_t checked_serial = 0;
  for (int round = 0; round < kRoundsMax; ++round) {
    const auto patterns = all_patterns();
    if (patterns->empty() || patterns == judged) break;
    const uint64_t newest_serial = last_serial_;
    lock.unlock();
    for (const auto& pattern : *patterns) {
      if (pattern->serial > checked_serial && pattern->glob.matches(channel)) {
        matching.push_back(pattern);
      }
    }
    lock.lock();
    judged = patterns;
    checked_serial = newest_serial;
  }
  return matching;
}

size_t PubSub::publish(SubscriptionKind kind, std::string_view channel, std::string_view payload,
                       const std::function<void()>& in_order) {
  assert(kind != SubscriptionKind::kPattern);
  size_t receivers = 0;
  std::vector<bool> sleeping;
  std::shared_ptr<const std::string> shared_payload;
  const auto send = [&](SubscriptionKind to, std::string_view name,
                        const Subscribers& subscribers) {
    if (shared_payload == nullptr) {
      sleeping.resize(inboxes_.size());
      shared_payload = std::make_shared<const std::string>(std::string(payload) + "\r\n");
    }
    receivers += subscribers.size();
    hand_out(
        std::make_shared<const Message>(Message{
            to, std::string(name), head_of(to, name, channel, payload.size()), shared_payload}),
        subscribers, sleeping);
  };
  {
    std::unique_lock lock(mutex_);
    Patterns matching;
    if (kind == SubscriptionKind::kChannel) matching = matching_patterns(channel, lock);
    if (in_order) in_order();
    const auto found = at(kind).find(channel);
    if (found != at(kind).end()) send(kind, found->first, found->second.subscribers);
    const ByName& by_pattern = at(SubscriptionKind::kPattern);
    for (const auto& pattern : matching) {
      const auto heard = by_pattern.find(pattern->name);
      // The pattern may have been removed while the lock was released. If it was also added again,
      // the new Pattern object is a separate element of `matching`.
      if (heard == by_pattern.end() || heard->second.pattern != pattern) continue;
      send(SubscriptionKind::kPattern, pattern->name, heard->second.subscribers);
    }
  }
  for (size_t i = 0; i < sleeping.size(); ++i) {
    if (sleeping[i]) waker_.wake_for_messages(i);
  }
  return receivers;
}

void PubSub::hand_out(std::shared_ptr<const Message> message, const Subscribers& subscribers,
                      std::vector<bool>& sleeping) {
  const std::shared_ptr<const Message> shared = std::move(message);
  std::vector<std::vector<Delivery::Receiver>> by_thread(inboxes_.size());
  for (const Listener& listener : subscribers) {
    by_thread[listener.thread_index].push_back({listener.session_id, listener.serial});
  }
  for (size_t i = 0; i < by_thread.size(); ++i) {
    if (by_thread[i].empty()) continue;
    if (put(i, {.message = shared, .receivers = std::move(by_thread[i])})) sleeping[i] = true;
  }
}

bool PubSub::put(size_t thread_index, Delivery delivery) {
  pending_bytes_.fetch_add(delivery.memory_bytes(), std::memory_order_relaxed);
  Inbox& inbox = *inboxes_[thread_index];
  const std::scoped_lock lock(inbox.mutex);
  inbox.deliveries.push_back(std::move(delivery));
  return !std::exchange(inbox.is_awake, true);
}

void PubSub::post(size_t thread_index, Delivery delivery) {
  if (put(thread_index, std::move(delivery))) wake(thread_index);
}

std::optional<Delivery> PubSub::take(size_t thread_index) {
  Inbox& inbox = *inboxes_[thread_index];
  const std::scoped_lock lock(inbox.mutex);
  if (inbox.deliveries.empty()) {
    inbox.is_awake = false;
    return std::nullopt;
  }
  Delivery delivery = std::move(inbox.deliveries.front());
  inbox.deliveries.pop_front();
  pending_bytes_.fetch_sub(delivery.memory_bytes(), std::memory_order_relaxed);
  return delivery;
}

std::vector<std::shared_ptr<const Invalidation>> PubSub::take_invalidations(size_t thread_index,
                                                                            uint64_t session_id) {
  std::vector<std::shared_ptr<const Invalidation>> found;
  const auto is_wanted = [session_id](const Delivery::Receiver& receiver) {
    return receiver.session_id == session_id;
  };
  Inbox& inbox = *inboxes_[thread_index];
  const std::scoped_lock lock(inbox.mutex);
  for (Delivery& delivery : inbox.deliveries) {
    if (delivery.invalidation == nullptr || delivery.is_redirected) continue;
    const size_t bytes_before = delivery.memory_bytes();
    if (std::erase_if(delivery.receivers, is_wanted) == 0) continue;
    found.push_back(delivery.invalidation);
    pending_bytes_.fetch_sub(bytes_before - delivery.memory_bytes(), std::memory_order_relaxed);
  }
  return found;
}

std::vector<std::string> PubSub::names(SubscriptionKind kind,
                                       std::optional<std::string_view> pattern) const {
  std::vector<std::string> result;
  {
    const std::scoped_lock lock(mutex_);
    result.reserve(at(kind).size());
    for (const auto& [name, listeners] : at(kind)) result.push_back(name);
  }
  if (pattern) {
    const core::Glob glob(*pattern);
    std::erase_if(result, [&](const std::string& name) { return !glob.matches(name); });
  }
  return result;
}

std::vector<PubSub::Subscription> PubSub::subscriptions_of(
    const std::vector<uint64_t>& session_ids) const {
  std::vector<Subscription> result;
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < kSubscriptionKindCount; ++i) {
    for (const auto& [name, listeners] : names_[i]) {
      for (const Listener& listener : listeners.subscribers) {
        if (!std::ranges::binary_search(session_ids, listener.session_id)) continue;
        result.push_back({listener.session_id, static_cast<SubscriptionKind>(i), name});
      }
    }
  }
  return result;
}

size_t PubSub::name_count(SubscriptionKind kind) const {
  const std::scoped_lock lock(mutex_);
  return at(kind).size();
}

size_t PubSub::subscriber_count(SubscriptionKind kind, std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = at(kind).find(name);
  return found == at(kind).end() ? 0 : found->second.subscribers.size();
}

}  // namespace server
