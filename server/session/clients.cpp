// SPDX-License-Identifier: MIT
#include "server/session/clients.h"

#include <algorithm>
#include <functional>

#include "server/process/log.h"

namespace server {

void Clients::evict_over(uint64_t limit_bytes) {
  const std::unique_lock choosing(evicting_, std::try_to_lock);
  if (!choosing) return;
  struct Candidate {
    uint64_t bytes;
    std::shared_ptr<Session> session;
  };
  std::vector<Candidate> candidates;
  uint64_t total_bytes = 0;
  for (auto& session : list()) {
    // A session that is being closed does not count.
    const Peer peer = session->peer;
    const bool is_client = peer == Peer::kClient || peer == Peer::kMonitor;
    if (!is_client || session->kill_requested) continue;
    const uint64_t bytes = session->memory_bytes();
    total_bytes += bytes;
    if (!session->no_evict) candidates.push_back({bytes, std::move(session)});
  }
  if (total_bytes < limit_bytes) return;
  std::ranges::sort(candidates, std::greater{}, &Candidate::bytes);
  for (const Candidate& one : candidates) {
    if (total_bytes < limit_bytes) return;
    log_notice("Evicting client {} ({}), which takes {} bytes", one.session->id,
               one.session->address, one.bytes);
    one.session->request_kill();
    evicted_count_.fetch_add(1, std::memory_order_relaxed);
    total_bytes -= one.bytes;
  }
}

}  // namespace server
