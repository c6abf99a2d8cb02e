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

  void add(std::shared_ptr<Session> session);
  void remove(uint64_t id);
  // A killed session has gone for find() and list(), though its thread may not have closed it yet.
  std::shared_ptr<Session> find(uint64_t id) const;
  // In the order of their ids.
  std::vector<std::shared_ptr<Session>> list() const;
  // Sums of memory_bytes(), by the kind of peer.
  struct Memory {
    uint64_t normal_bytes = 0;
    uint64_t replica_bytes = 0;
  };
  Memory memory() const;
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // Brings the sum up to date with what one session takes. Called by the session's thread when that
  // may have changed; costs an atomic write only if it has.
  void count_memory(Session& session);
  // maxmemory-clients, when the sum has grown: closes clients, the biggest first, until the rest
  // takes less than `limit_bytes` together. Replicas, the link to the leader and CLIENT NO-EVICT
  // are left alone. When that does not suffice, nothing more is done until the next evict_over().
  // Returns whether clients were evicted, which their threads must close.
  bool keep_below(uint64_t limit_bytes) {
    if (is_over(limit_bytes) && !is_futile_.load(std::memory_order_relaxed)) [[unlikely]]
      return evict_over(limit_bytes);
    return false;
  }
  // The same, looking at all clients again; for the periodic task.
  bool evict_over(uint64_t limit_bytes);
  // Memory of evicted clients that their threads have not closed yet.
  uint64_t closing_bytes() const { return closing_bytes_.load(std::memory_order_relaxed); }
  uint64_t evicted_count() const { return evicted_count_.load(std::memory_order_relaxed); }
  void reset_evicted_count() { evicted_count_.store(0, std::memory_order_relaxed); }

 private:
  bool is_over(uint64_t limit_bytes) const {
    return sum_bytes_.load(std::memory_order_relaxed) >= static_cast<int64_t>(limit_bytes);
  }
  // Removes the client's memory from the sum and returns it.
  uint64_t stop_counting(Session& session);
  // The same, for an evicted session.
  void count_closing(const Session& session);
  void evict(Session& session);

  std::atomic<uint64_t> last_id_{0};
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> evicted_count_{0};
  std::atomic<int64_t> sum_bytes_{0};   // of counted_bytes; a change may arrive before an older one
  std::atomic<bool> is_futile_{false};  // no client was left that may be closed
  std::mutex evicting_;                 // held while one thread chooses, taken before mutex_
  std::atomic<uint64_t> closing_bytes_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::map<uint64_t, std::shared_ptr<Session>> sessions_;
  std::map<uint64_t, uint64_t> closing_;  // the part of each in closing_bytes_
};

}  // namespace server
