// SPDX-License-Identifier: MIT
//
// Subscriptions: the subscriptions of one session, and its CLIENT TRACKING state.
//
// Invariants: a session has at most one subscription of each kind to a name. PubSub assigns the
// serial number of each subscription.
// Thread safety: belongs to the session's thread. It publishes its SubscriptionFigures to other
// threads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory/allocation_size.h"
#include "server/session/pubsub/subscription_figures.h"

namespace server {

struct RegisteredCommand;

// The options of a session's CLIENT TRACKING while tracking is on. No prefix begins with another
// prefix. There are prefixes only with BCAST. A session never has both OPTIN and OPTOUT.
struct ClientTracking {
  // With BCAST the client is notified of all keys with its prefixes, instead of keys that it has
  // read.
  bool is_broadcast = false;
  bool opts_in = false;    // with OPTIN, only keys read after CLIENT CACHING YES are tracked
  bool opts_out = false;   // with OPTOUT, keys read after CLIENT CACHING NO are not tracked
  bool no_loop = false;    // with NOLOOP, the client is not notified of its own changes
  bool is_broken = false;  // true if the client that messages are redirected to has disconnected
  uint64_t redirect = 0;   // id of the client that messages are redirected to; 0 for none

  // Points to the command CLIENT while CLIENT CACHING is in effect; otherwise null. CLIENT CACHING
  // affects the next command or transaction. Subcommands of CLIENT do not end its effect.
  const RegisteredCommand* caching_family = nullptr;
  std::set<std::string, std::less<>> prefixes;
};

class Subscriptions {
 public:
  explicit Subscriptions(SubscriptionFigures& figures) : figures_(figures) {}

  bool contains(SubscriptionKind kind, std::string_view name) const {
    return at(kind).contains(name);
  }
  // Returns whether the session still holds the subscription with this serial.
  bool contains(SubscriptionKind kind, std::string_view name, uint64_t serial) const {
    const auto found = at(kind).find(name);
    return found != at(kind).end() && found->second == serial;
  }
  // Adds a subscription. REQUIRES: the session does not hold a subscription of this name.
  void add(SubscriptionKind kind, std::string_view name, uint64_t serial) {
    const auto added = names_[index(kind)].emplace(name, serial).first;
    figures_.names_bytes.fetch_add(name_bytes(added->first), std::memory_order_relaxed);
    show(kind);
  }
  void remove(SubscriptionKind kind, std::string_view name) {
    auto& names = names_[index(kind)];
    if (const auto found = names.find(name); found != names.end()) {
      figures_.names_bytes.fetch_sub(name_bytes(found->first), std::memory_order_relaxed);
      names.erase(found);
    }
    show(kind);
  }

  bool any() const { return total_ != 0; }
  size_t count(SubscriptionKind kind) const { return at(kind).size(); }
  // Returns the names in ascending order.
  std::vector<std::string> names(SubscriptionKind kind) const {
    std::vector<std::string> result;
    for (const auto& [name, serial] : at(kind)) result.push_back(name);
    return result;
  }

  // Returns the options of CLIENT TRACKING, or null while tracking is off. A caller that changes
  // the options must then call show_tracking().
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
    figures_.prefixes_bytes = bytes;
    figures_.tracks = tracking_ != nullptr;
    figures_.redirect_is_broken = shown.is_broken;
    figures_.is_broadcast = shown.is_broadcast;
    figures_.redirect = shown.redirect;
  }

 private:
  using Names = std::map<std::string, uint64_t, std::less<>>;  // maps names to serial numbers

  // Returns the memory of one map node: its links, the name and the serial.
  static uint64_t name_bytes(const std::string& name) {
    constexpr size_t kNode = 4 * sizeof(void*) + sizeof(Names::value_type);
    return core::allocation_size(kNode) + core::text_bytes(name);
  }
  // Returns an estimate of the memory of one tracking prefix. The prefix is stored twice: in a node
  // of this object, and in a node of Tracking's table.
  static uint64_t prefix_bytes(std::string_view prefix) {
    constexpr uint64_t kNodesBytes = 200;
    return kNodesBytes + 2 * prefix.size();
  }
  static size_t index(SubscriptionKind kind) { return static_cast<size_t>(kind); }
  const Names& at(SubscriptionKind kind) const { return names_[index(kind)]; }
  void show(SubscriptionKind kind) {
    figures_.set_count(kind, at(kind).size());
    total_ = names_[0].size() + names_[1].size() + names_[2].size();
  }

  SubscriptionFigures& figures_;
  std::array<Names, kSubscriptionKindCount> names_;
  size_t total_ = 0;
  std::unique_ptr<ClientTracking> tracking_;
};

}  // namespace server
