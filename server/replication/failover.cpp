// SPDX-License-Identifier: MIT
#include "server/replication/failover.h"

#include <algorithm>
#include <limits>

namespace server {
namespace {

constexpr int64_t kMsUs = 1000;

int64_t deadline_of(int64_t timeout_ms, int64_t now_us) {
  constexpr int64_t kForeverUs = std::numeric_limits<int64_t>::max();
  if (timeout_ms == 0 || timeout_ms > (kForeverUs - now_us) / kMsUs) return kForeverUs;
  return now_us + timeout_ms * kMsUs;
}

}  // namespace

core::Result<> Failover::begin(const Request& request, bool is_replica,
                               std::span<const Candidate> candidates, int64_t now_us) {
  if (state() != State::kNone) return core::Error{"ERR FAILOVER already in progress."};
  if (is_replica) return core::Error{"ERR FAILOVER is not valid when server is a replica."};
  if (candidates.empty()) return core::Error{"ERR FAILOVER requires connected replicas."};
  if (request.is_forced && (request.timeout_ms == 0 || !request.target)) {
    return core::Error{
        "ERR FAILOVER with force option requires both a timeout and target HOST and IP."};
  }
  if (request.target) {
    const auto found = std::ranges::find(candidates, *request.target, &Candidate::address);
    if (found == candidates.end()) {
      return core::Error{"ERR FAILOVER target HOST and PORT is not a replica."};
    }
    if (!found->is_online) return core::Error{"ERR FAILOVER target replica is not online."};
  }
  request_ = request;
  deadline_us_ = deadline_of(request.timeout_ms, now_us);
  writes_have_ended_ = false;
  ++attempt_;
  state_ = State::kAwaitsSync;
  return {};
}

void Failover::record_writes_ended(uint64_t attempt) {
  if (attempt == attempt_) writes_have_ended_ = true;
}

Failover::Decision Failover::decide(uint64_t offset, std::span<const Candidate> candidates,
                                    int64_t now_us) const {
  if (state() != State::kAwaitsSync || !writes_have_ended_) return {};
  const auto has_all = [&](const Candidate& candidate) {
    return candidate.is_online && candidate.acked >= offset &&
           (!request_.target || candidate.address == *request_.target);
  };
  const auto found = std::ranges::find_if(candidates, has_all);
  if (found != candidates.end()) return {Decision::Kind::kHandOver, found->address};
  if (now_us < deadline_us_) return {};
  if (request_.is_forced) return {Decision::Kind::kHandOver, *request_.target};
  return {Decision::Kind::kGiveUp, {}};
}

std::string_view failover_state_name(Failover::State state) {
  // The names are in the order of Failover::State.
  constexpr std::string_view kNames[] = {"no-failover", "waiting-for-sync", "failover-in-progress"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace server
