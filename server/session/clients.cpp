// SPDX-License-Identifier: MIT
#include "server/session/clients.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "server/base/log/log.h"

namespace server {
namespace {

bool is_counted(const Client& client) {
  const Peer peer = client.peer;
  return peer == Peer::kClient || peer == Peer::kMonitor;
}

}  // namespace

void Clients::add(std::shared_ptr<Client> client) {
  count_memory(*client);
  const std::scoped_lock lock(mutex_);
  clients_.emplace(client->id, std::move(client));
  count_.store(clients_.size(), std::memory_order_relaxed);
}

void Clients::remove(uint64_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  stop_counting(*found->second);
  clients_.erase(found);
  if (const auto closing = closing_.extract(id)) closing_bytes_ -= closing.mapped();
  count_.store(clients_.size(), std::memory_order_relaxed);
}

std::shared_ptr<Client> Clients::find(uint64_t id) const {
  const std::scoped_lock lock(mutex_);
  const auto found = clients_.find(id);
  return found == clients_.end() || found->second->kill_requested ? nullptr : found->second;
}

std::vector<std::shared_ptr<Client>> Clients::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Client>> result;
  result.reserve(clients_.size());
  for (const auto& [id, client] : clients_) {
    if (!client->kill_requested) result.push_back(client);
  }
  return result;
}

Clients::Memory Clients::memory() const {
  Memory memory;
  for (const auto& client : list()) {
    const bool is_replica = client->peer == Peer::kReplica;
    (is_replica ? memory.replica_bytes : memory.normal_bytes) += client->memory_bytes();
  }
  return memory;
}

void Clients::count_memory(Client& client) {
  const uint64_t bytes = is_counted(client) ? client.memory_bytes() : 0;
  uint64_t before = client.counted_bytes.load(std::memory_order_relaxed);
  if (bytes == before) return;
  // Another thread may stop counting the client at the same time, for example to evict it.
  do {
    if (before == Client::kNotCounted) return count_closing(client);
  } while (!client.counted_bytes.compare_exchange_weak(before, bytes, std::memory_order_relaxed));
  sum_bytes_.fetch_add(static_cast<int64_t>(bytes - before), std::memory_order_relaxed);
}

// Updates closing_bytes_ after the memory of an evicted client has changed. The limit maxmemory
// does not include closing_bytes_, because keys should not be evicted for memory that is freed
// soon.
void Clients::count_closing(const Client& client) {
  const std::scoped_lock lock(mutex_);
  const auto found = closing_.find(client.id);
  if (found == closing_.end()) return;
  const uint64_t bytes = client.memory_bytes();
  closing_bytes_ += bytes - found->second;
  found->second = bytes;
}

uint64_t Clients::stop_counting(Client& client) {
  const uint64_t before = client.counted_bytes.exchange(Client::kNotCounted);
  if (before == Client::kNotCounted) return 0;
  sum_bytes_.fetch_sub(static_cast<int64_t>(before), std::memory_order_relaxed);
  return before;
}

void Clients::evict(Client& client) {
  const uint64_t bytes = stop_counting(client);
  {
    const std::scoped_lock lock(mutex_);
    if (clients_.contains(client.id) && closing_.emplace(client.id, bytes).second) {
      closing_bytes_ += bytes;
    }
  }
  client.request_kill();
  evicted_count_.fetch_add(1, std::memory_order_relaxed);
}

bool Clients::evict_over(uint64_t limit_bytes) {
  const std::unique_lock choosing(evicting_, std::try_to_lock);
  if (!choosing) return false;
  is_futile_.store(false, std::memory_order_relaxed);
  struct Candidate {
    uint64_t bytes;
    std::shared_ptr<Client> client;
  };
  std::vector<Candidate> candidates;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, client] : clients_) {
      if (client->kill_requested) {
        stop_counting(*client);
        continue;
      }
      // The memory of idle clients is counted again, too, because it can grow. When the first
      // subscriber of a channel leaves, the channel's shared memory counts as memory of the next
      // subscriber.
      count_memory(*client);
      if (is_counted(*client) && !client->no_evict) {
        candidates.push_back({client->counted_bytes.load(), client});
      }
    }
  }
  std::ranges::stable_sort(candidates, std::greater{}, &Candidate::bytes);
  bool are_some_evicted = false;
  for (const Candidate& one : candidates) {
    if (!is_over(limit_bytes)) return are_some_evicted;
    if (one.bytes == Client::kNotCounted) continue;
    log_notice("Evicting client {} ({}), which takes {} bytes", one.client->id, one.client->address,
               one.bytes);
    evict(*one.client);
    are_some_evicted = true;
  }
  is_futile_.store(is_over(limit_bytes), std::memory_order_relaxed);
  return are_some_evicted;
}

}  // namespace server
