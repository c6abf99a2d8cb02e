// SPDX-License-Identifier: MIT
#include "server/replication/stream/key_expiry.h"

#include <algorithm>

namespace server {

void KeyExpiry::tick() {
  if (parts_.state.availability.has(Availability::kLoading)) return;
  if (!parts_.state.expires_actively) return;
  if (parts_.pause.holds_back(kWrite, parts_.clock.wall_ms())) return;
  // A replica's leader says when one of its keys has expired.
  if (parts_.state.is_replica) {
    expire_own();
  } else {
    expire_all();
  }
}

void KeyExpiry::expire_all() {
  const int64_t start_us = parts_.clock.monotonic_us();
  // A quarter of the time at most, as Redis' slow cycle spends.
  constexpr int64_t kShareOfSecond = 4;
  core::keyspace::ExpiryBudget budget;
  budget.duration_us_max = 1'000'000 / kShareOfSecond / std::max<int64_t>(1, parts_.config.hz());
  expiry_.tick(budget);
  parts_.gauges.expire_cycle_us.fetch_add(
      static_cast<uint64_t>(parts_.clock.monotonic_us() - start_us));
}

void KeyExpiry::expire_own() {
  constexpr int64_t kDurationUsMax = 5000;
  const int64_t start_us = parts_.clock.monotonic_us();
  while (!parts_.own_expiries.tick(parts_.keyspace, parts_.clock.wall_ms())) {
    if (parts_.clock.monotonic_us() - start_us > kDurationUsMax) break;
  }
}

}  // namespace server
