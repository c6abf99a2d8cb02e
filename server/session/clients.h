// SPDX-License-Identifier: MIT
//
// Clients: every connected client, by its id.
//
// Invariants: a client is added before its first byte is read, and removed when its connection is
// closed.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/session/client.h"

namespace server {

class Clients {
 public:
  uint64_t next_id() { return last_id_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void add(std::shared_ptr<Client> client);
  void remove(uint64_t id);
  // Returns the client with the id; null if there is none. find() and list() omit a killed
  // client, even if its thread has not closed the connection yet.
  std::shared_ptr<Client> find(uint64_t id) const;
  // Returns the clients in the order of their ids.
  std::vector<std::shared_ptr<Client>> list() const;
  // The sums of Client::memory_bytes() of the clients in list(). Replicas have a sum of their
  // own.
  struct Memory {
    uint64_t normal_bytes = 0;
    uint64_t replica_bytes = 0;
  };
  Memory memory() const;
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // Updates the total memory of all clients after a possible change of one session's memory. Called
  // on the session's thread. Costs an atomic write only if the session's memory has changed.
  void count_memory(Client& client);
  // Enforces maxmemory-clients after the sum has grown: evicts the biggest clients until the rest
  // use less than `limit_bytes`. Replicas and the link to the leader do not count. Clients with
  // NO-EVICT count, but are never evicted. If these alone use the limit, this function evicts no
  // more clients until evict_over() has found that the sum is below the limit again. Returns
  // whether clients were evicted. The threads of evicted clients must close the connections.
  bool keep_below(uint64_t limit_bytes) {
    if (is_over(limit_bytes) && !is_futile_.load(std::memory_order_relaxed)) [[unlikely]]
      return evict_over(limit_bytes);
    return false;
  }
  // Does the same as keep_below(), but first measures the memory of every client again. Called by
  // the periodic task.
  bool evict_over(uint64_t limit_bytes);
  // Returns the memory of evicted clients whose threads have not closed the connections yet.
  uint64_t closing_bytes() const { return closing_bytes_.load(std::memory_order_relaxed); }
  uint64_t evicted_count() const { return evicted_count_.load(std::memory_order_relaxed); }
  void reset_evicted_count() { evicted_count_.store(0, std::memory_order_relaxed); }

 private:
  bool is_over(uint64_t limit_bytes) const {
    const int64_t sum_bytes = sum_bytes_.load(std::memory_order_relaxed);
    return sum_bytes >= 0 && static_cast<uint64_t>(sum_bytes) >= limit_bytes;
  }
  // Subtracts the client's memory from the sum. Returns the number of subtracted bytes.
  uint64_t stop_counting(Client& client);
  // Updates closing_bytes_ after the memory of an evicted client has changed. Does nothing for
  // other clients.
  void count_closing(const Client& client);
  void evict(Client& client);

  std::atomic<uint64_t> last_id_{0};
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> evicted_count_{0};
  // Sum of the clients' counted_bytes. It is signed, because a subtraction may come before the
  // addition that another thread makes for the same client.
  std::atomic<int64_t> sum_bytes_{0};
  // True if the last eviction could not reach the limit, because the clients with NO-EVICT alone
  // use `limit_bytes` or more.
  std::atomic<bool> is_futile_{false};

  // This mutex is held while a thread chooses clients to evict. It is locked before mutex_.
  std::mutex evicting_;
  std::atomic<uint64_t> closing_bytes_{0};
  mutable std::mutex mutex_;  // this mutex guards the members below
  std::map<uint64_t, std::shared_ptr<Client>> clients_;
  // Maps the id of each evicted client that is not removed yet to the client's share of
  // closing_bytes_, in bytes.
  std::map<uint64_t, uint64_t> closing_;
};

}  // namespace server
