// SPDX-License-Identifier: MIT
//
// Clients: every connected session, by its id.
//
// Invariants: a session is listed from its first byte read until its connection is closed.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/session/session.h"

namespace server {

class Clients {
 public:
  uint64_t next_id() { return last_id_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void add(std::shared_ptr<Session> session) {
    const std::scoped_lock lock(mutex_);
    sessions_.emplace(session->id, std::move(session));
    count_.store(sessions_.size(), std::memory_order_relaxed);
  }
  void remove(uint64_t id) {
    const std::scoped_lock lock(mutex_);
    sessions_.erase(id);
    count_.store(sessions_.size(), std::memory_order_relaxed);
  }
  std::shared_ptr<Session> find(uint64_t id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second;
  }
  // In the order of their ids.
  std::vector<std::shared_ptr<Session>> list() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<Session>> result;
    result.reserve(sessions_.size());
    for (const auto& [id, session] : sessions_) result.push_back(session);
    return result;
  }
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // maxmemory-clients: closes clients, the biggest first, until the rest takes less than
  // `limit_bytes` together. Replicas, the link to the leader and CLIENT NO-EVICT are left alone.
  void evict_over(uint64_t limit_bytes);
  uint64_t evicted_count() const { return evicted_count_.load(std::memory_order_relaxed); }
  void reset_evicted_count() { evicted_count_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> last_id_{0};
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> evicted_count_{0};
  std::mutex evicting_;       // held while one thread chooses, taken before mutex_
  mutable std::mutex mutex_;  // guards sessions_
  std::map<uint64_t, std::shared_ptr<Session>> sessions_;
};

}  // namespace server
