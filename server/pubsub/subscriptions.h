// SPDX-License-Identifier: MIT
//
// Subscriptions: what one session has subscribed to, and whether it tracks keys.
//
// Invariants: a name stands at most once per kind; its serial is the one that PubSub gave for it.
// Thread safety: belongs to the session's thread; the shown_ counts may be read from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/byte_buffer.h"

namespace server {

struct RegisteredCommand;

// What a session has asked of CLIENT TRACKING while it is on. No prefix begins with another one,
// and there are some only with broadcast; a session never both opts in and opts out.
struct ClientTracking {
  bool is_broadcast = false;  // told of all keys with its prefixes, instead of those it has read
  bool opts_in = false;       // only keys read behind CLIENT CACHING YES
  bool opts_out = false;      // all but keys read behind CLIENT CACHING NO
  bool no_loop = false;       // not told of its own changes
  bool is_broken = false;     // the client that messages are redirected to has gone
  uint64_t redirect = 0;      // the id of that client; 0 for none
  // CLIENT CACHING was given for the next command: the container of that one, whose subcommands do
  // not use it up.
  const RegisteredCommand* caching_family = nullptr;
  std::set<std::string, std::less<>> prefixes;
};

// Memory of a string beyond the object's own.
inline uint64_t text_bytes(const std::string& text) {
  const size_t held_inside = std::string().capacity();
  return text.capacity() <= held_inside ? 0 : core::keyspace::allocation_size(text.capacity() + 1);
}

enum class SubscriptionKind : uint8_t { kChannel, kPattern, kShardChannel };
inline constexpr size_t kSubscriptionKindCount = 3;

class Subscriptions {
 public:
  bool contains(SubscriptionKind kind, std::string_view name) const {
    return at(kind).contains(name);
  }
  // Whether a message to the subscription of this serial is still wanted.
  bool contains(SubscriptionKind kind, std::string_view name, uint64_t serial) const {
    const auto found = at(kind).find(name);
    return found != at(kind).end() && found->second == serial;
  }
  // REQUIRES: the name is new.
  void add(SubscriptionKind kind, std::string_view name, uint64_t serial) {
    const auto added = names_[index(kind)].emplace(name, serial).first;
    shown_bytes_.fetch_add(name_bytes(added->first), std::memory_order_relaxed);
    show(kind);
  }
  void remove(SubscriptionKind kind, std::string_view name) {
    auto& names = names_[index(kind)];
    if (const auto found = names.find(name); found != names.end()) {
      shown_bytes_.fetch_sub(name_bytes(found->first), std::memory_order_relaxed);
      names.erase(found);
    }
    show(kind);
  }

  bool any() const { return total_ != 0; }
  size_t count(SubscriptionKind kind) const { return at(kind).size(); }
  // In ascending order.
  std::vector<std::string> names(SubscriptionKind kind) const {
    std::vector<std::string> result;
    for (const auto& [name, serial] : at(kind)) result.push_back(name);
    return result;
  }

  // CLIENT TRACKING; null while it is off. show_tracking() must follow each change.
  ClientTracking* tracking() const { return tracking_.get(); }
  void set_tracking(std::unique_ptr<ClientTracking> tracking) {
    tracking_ = std::move(tracking);
    show_tracking();
  }
  void show_tracking() {
    const ClientTracking none;
    const ClientTracking& shown = tracking_ == nullptr ? none : *tracking_;
    uint64_t bytes = 0;
    for (const std::string& prefix : shown.prefixes) bytes += prefix_bytes(prefix);
    shown_bytes_.fetch_add(bytes - std::exchange(prefixes_bytes_, bytes),
                           std::memory_order_relaxed);
    shown_tracking_.is_on.store(tracking_ != nullptr, std::memory_order_relaxed);
    shown_tracking_.is_broken.store(shown.is_broken, std::memory_order_relaxed);
    shown_tracking_.is_broadcast.store(shown.is_broadcast, std::memory_order_relaxed);
    shown_tracking_.redirect.store(shown.redirect, std::memory_order_relaxed);
  }

  // For other threads.
  struct ShownTracking {
    std::atomic<bool> is_on{false};
    std::atomic<bool> is_broken{false};
    std::atomic<bool> is_broadcast{false};
    std::atomic<uint64_t> redirect{0};
  };
  const ShownTracking& shown_tracking() const { return shown_tracking_; }
  size_t shown_count(SubscriptionKind kind) const {
    return shown_[index(kind)].load(std::memory_order_relaxed);
  }
  bool shown_any() const {
    return shown_count(SubscriptionKind::kChannel) + shown_count(SubscriptionKind::kPattern) +
               shown_count(SubscriptionKind::kShardChannel) !=
           0;
  }
  // What they cost, in PubSub's table, too.
  uint64_t shown_bytes() const { return shown_bytes_.load(std::memory_order_relaxed); }
  // Where PubSub adds and subtracts its part.
  std::atomic<uint64_t>& shared_bytes() { return shown_bytes_; }

 private:
  using Names = std::map<std::string, uint64_t, std::less<>>;  // name to serial

  // A node of the map: its links, and the name with its serial.
  static uint64_t name_bytes(const std::string& name) {
    constexpr size_t kNode = 4 * sizeof(void*) + sizeof(Names::value_type);
    return core::keyspace::allocation_size(kNode) + text_bytes(name);
  }
  // A prefix stands here and in Tracking's table, each time in a node of its own.
  static uint64_t prefix_bytes(std::string_view prefix) {
    constexpr uint64_t kNodesBytes = 200;
    return kNodesBytes + 2 * prefix.size();
  }
  static size_t index(SubscriptionKind kind) { return static_cast<size_t>(kind); }
  const Names& at(SubscriptionKind kind) const { return names_[index(kind)]; }
  void show(SubscriptionKind kind) {
    shown_[index(kind)].store(at(kind).size(), std::memory_order_relaxed);
    total_ = names_[0].size() + names_[1].size() + names_[2].size();
  }

  std::array<Names, kSubscriptionKindCount> names_;
  std::array<std::atomic<size_t>, kSubscriptionKindCount> shown_{};
  std::atomic<uint64_t> shown_bytes_{0};
  size_t total_ = 0;
  std::unique_ptr<ClientTracking> tracking_;
  uint64_t prefixes_bytes_ = 0;  // in shown_bytes_
  ShownTracking shown_tracking_;
};

}  // namespace server
