// SPDX-License-Identifier: MIT
#include "server/session/clients.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "server/base/log/log.h"

namespace server {
namespace {

bool is_counted(const Session& session) {
  const Peer peer = session.peer;
  return peer == Peer::kClient || peer == Peer::kMonitor;
}

}  // namespace

void Clients::add(std::shared_ptr<Session> session) {
  count_memory(*session);
  const std::scoped_lock lock(mutex_);
  sessions_.emplace(session->id, std::move(session));
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

void Clients::remove(uint64_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  stop_counting(*found->second);
  sessions_.erase(found);
  if (const auto closing = closing_.extract(id)) closing_bytes_ -= closing.mapped();
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

std::shared_ptr<Session> Clients::find(uint64_t id) const {
  const std::scoped_lock lock(mutex_);
  const auto found = sessions_.find(id);
  return found == sessions_.end() || found->second->kill_requested ? nullptr : found->second;
}

std::vector<std::shared_ptr<Session>> Clients::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Session>> result;
  result.reserve(sessions_.size());
  for (const auto& [id, session] : sessions_) {
    if (!session->kill_requested) result.push_back(session);
  }
  return result;
}

Clients::Memory Clients::memory() const {
  Memory memory;
  for (const auto& session : list()) {
    const bool is_replica = session->peer == Peer::kReplica;
    (is_replica ? memory.replica_bytes : memory.normal_bytes) += session->memory_bytes();
  }
  return memory;
}

void Clients::count_memory(Session& session) {
  const uint64_t bytes = is_counted(session) ? session.memory_bytes() : 0;
  uint64_t before = session.counted_bytes.load(std::memory_order_relaxed);
  if (bytes == before) return;
  // Another thread may stop counting the session at the same time, for example to evict it.
  do {
    if (before == Session::kNotCounted) return count_closing(session);
  } while (!session.counted_bytes.compare_exchange_weak(before, bytes, std::memory_order_relaxed));
  sum_bytes_.fetch_add(static_cast<int64_t>(bytes - before), std::memory_order_relaxed);
}

// Updates closing_bytes_ after the memory of an evicted client has changed. The limit maxmemory
// does not include closing_bytes_, because keys should not be evicted for memory that is freed
// soon.
void Clients::count_closing(const Session& session) {
  const std::scoped_lock lock(mutex_);
  const auto found = closing_.find(session.id);
  if (found == closing_.end()) return;
  const uint64_t bytes = session.memory_bytes();
  closing_bytes_ += bytes - found->second;
  found->second = bytes;
}

uint64_t Clients::stop_counting(Session& session) {
  const uint64_t before = session.counted_bytes.exchange(Session::kNotCounted);
  if (before == Session::kNotCounted) return 0;
  sum_bytes_.fetch_sub(static_cast<int64_t>(before), std::memory_order_relaxed);
  return before;
}

void Clients::evict(Session& session) {
  const uint64_t bytes = stop_counting(session);
  {
    const std::scoped_lock lock(mutex_);
    if (sessions_.contains(session.id) && closing_.emplace(session.id, bytes).second) {
      closing_bytes_ += bytes;
    }
  }
  session.request_kill();
  evicted_count_.fetch_add(1, std::memory_order_relaxed);
}

bool Clients::evict_over(uint64_t limit_bytes) {
  const std::unique_lock choosing(evicting_, std::try_to_lock);
  if (!choosing) return false;
  is_futile_.store(false, std::memory_order_relaxed);
  struct Candidate {
    uint64_t bytes;
    std::shared_ptr<Session> session;
  };
  std::vector<Candidate> candidates;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, session] : sessions_) {
      if (session->kill_requested) {
        stop_counting(*session);
        continue;
      }
      // The memory of idle clients is counted again, too, because it can grow. When the first
      // subscriber of a channel leaves, the channel's shared memory counts as memory of the next
      // subscriber.
      count_memory(*session);
      if (is_counted(*session) && !session->no_evict) {
        candidates.push_back({session->counted_bytes.load(), session});
      }
    }
  }
  std::ranges::stable_sort(candidates, std::greater{}, &Candidate::bytes);
  bool are_some_evicted = false;
  for (const Candidate& one : candidates) {
    if (!is_over(limit_bytes)) return are_some_evicted;
    if (one.bytes == Session::kNotCounted) continue;
    log_notice("Evicting client {} ({}), which takes {} bytes", one.session->id,
               one.session->address, one.bytes);
    evict(*one.session);
    are_some_evicted = true;
  }
  is_futile_.store(is_over(limit_bytes), std::memory_order_relaxed);
  return are_some_evicted;
}

}  // namespace server
