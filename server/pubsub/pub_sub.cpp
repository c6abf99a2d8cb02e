// SPDX-License-Identifier: MIT
#include "server/pubsub/pub_sub.h"

#include <fmt/format.h>

#include <cassert>
#include <iterator>

#include "core/glob.h"

namespace server {
namespace {

void append_bulk(std::string& text, std::string_view value) {
  fmt::format_to(std::back_inserter(text), "${}\r\n", value.size());
  text.append(value).append("\r\n");
}

// All of the message between its type byte and the bytes of the payload. `pattern` is empty but
// for kPattern.
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

PubSub::PubSub(size_t thread_count) {
  for (size_t i = 0; i < thread_count; ++i) inboxes_.push_back(std::make_unique<Inbox>());
}

uint64_t PubSub::subscribe(SubscriptionKind kind, std::string_view name,
                           const Subscriber& subscriber) {
  assert(subscriber.thread_index < inboxes_.size());
  const std::scoped_lock lock(mutex_);
  const uint64_t serial = ++last_serial_;
  at(kind)[std::string(name)].emplace(subscriber.session_id,
                                      Place{subscriber.thread_index, serial});
  return serial;
}

void PubSub::unsubscribe(SubscriptionKind kind, std::string_view name, uint64_t session_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = at(kind).find(name);
  if (found == at(kind).end()) return;
  found->second.erase(session_id);
  if (found->second.empty()) at(kind).erase(found);
}

size_t PubSub::publish(SubscriptionKind kind, std::string_view channel, std::string_view payload) {
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
    const std::scoped_lock lock(mutex_);
    const auto found = at(kind).find(channel);
    if (found != at(kind).end()) send(kind, found->first, found->second);
    if (kind == SubscriptionKind::kChannel) {
      for (const auto& [pattern, subscribers] : at(SubscriptionKind::kPattern)) {
        if (!core::glob_matches(pattern, channel)) continue;
        send(SubscriptionKind::kPattern, pattern, subscribers);
      }
    }
  }
  for (size_t i = 0; i < sleeping.size(); ++i) {
    if (sleeping[i]) wake(i);
  }
  return receivers;
}

void PubSub::hand_out(std::shared_ptr<const Message> message, const Subscribers& subscribers,
                      std::vector<bool>& sleeping) {
  std::vector<std::vector<Delivery::Receiver>> by_thread(inboxes_.size());
  for (const auto& [session_id, place] : subscribers) {
    by_thread[place.thread_index].push_back({session_id, place.serial});
  }
  for (size_t i = 0; i < by_thread.size(); ++i) {
    if (by_thread[i].empty()) continue;
    Delivery delivery{message, std::move(by_thread[i])};
    pending_bytes_.fetch_add(delivery.memory_bytes(), std::memory_order_relaxed);
    Inbox& inbox = *inboxes_[i];
    const std::scoped_lock lock(inbox.mutex);
    inbox.deliveries.push_back(std::move(delivery));
    if (!inbox.is_awake) sleeping[i] = true;
    inbox.is_awake = true;
  }
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

std::vector<std::string> PubSub::names(SubscriptionKind kind,
                                       std::optional<std::string_view> pattern) const {
  std::vector<std::string> result;
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, subscribers] : at(kind)) {
    if (!pattern || core::glob_matches(*pattern, name)) result.push_back(name);
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
  return found == at(kind).end() ? 0 : found->second.size();
}

}  // namespace server
