// SPDX-License-Identifier: MIT
//
// Connections: the connections of one I/O thread, by session id.
//
// Invariants: a removed connection exists until the iteration of the event loop ends, because a
// function of the connection itself may have removed it.
// Thread safety: belongs to the I/O thread. Any thread may call count().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace server::net {

class Connection;

class Connections {
 public:
  void add(uint64_t id, std::shared_ptr<Connection> connection) {
    by_id_.emplace(id, std::move(connection));
    count_ = by_id_.size();
  }
  void forget(uint64_t id) {
    blocked_.erase(id);
    forgotten_.push_back(id);
  }
  void end_round() {
    if (forgotten_.empty()) return;
    for (const uint64_t id : forgotten_) by_id_.erase(id);
    forgotten_.clear();
    count_ = by_id_.size();
  }

  // Returns the connection with the id; null if there is none.
  std::shared_ptr<Connection> find(uint64_t id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }
  size_t count() const { return count_; }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& [id, connection] : by_id_) visit(*connection);
  }

  // Registers a connection whose command waits for an event. All registered connections are
  // notified of each event.
  void set_blocked(uint64_t id, bool is_blocked) {
    if (is_blocked) {
      blocked_.insert(id);
    } else {
      blocked_.erase(id);
    }
  }
  template <class Visit>
  void for_each_blocked(Visit&& visit) {
    for (const uint64_t id : std::set(blocked_)) {
      if (const auto connection = find(id)) visit(*connection);
    }
  }

 private:
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> by_id_;
  std::vector<uint64_t> forgotten_;
  std::set<uint64_t> blocked_;
  std::atomic<size_t> count_{0};
};

}  // namespace server::net
