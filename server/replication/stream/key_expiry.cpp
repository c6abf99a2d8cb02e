// SPDX-License-Identifier: MIT
#include "server/replication/stream/key_expiry.h"

#include <algorithm>

namespace server {
namespace {

// Maximum duration of one slice of expiry. Clients of this thread wait until the slice ends.
constexpr int64_t kSliceUsMax = 1000;
// Weight of the last period in the moving average that INFO shows as expired_stale_perc.
constexpr double kSmoothing = 0.05;

// Returns the percentage of one processor's time that expiry may use. The values are those of
// Redis.
int64_t share_percent(int64_t effort) {
  return 25 + 2 * (effort - 1);
}

}  // namespace

void KeyExpiry::tick() {
  if (!may_expire()) return;
  // A replica deletes only expired keys that its own clients wrote. The leader's stream deletes all
  // others.
  if (parts_.state.is_replica) return expire_own();
  end_period();
  const int64_t percent = share_percent(parts_.config.integer(OptionId::kActiveExpireEffort));
  left_us_ = 1'000'000 / std::max<int64_t>(1, parts_.config.hz()) * percent / 100;
  if (!is_posted_) run_slice();
}

bool KeyExpiry::may_expire() const {
  return !parts_.state.availability.has(Availability::kLoading) && parts_.state.expires_actively &&
         !parts_.pause.holds_back(kWrite, parts_.clock.wall_ms());
}

void KeyExpiry::run_slice() {
  const int64_t start_us = parts_.clock.monotonic_us();
  const core::keyspace::ExpiryReport report = expiry_.run(std::min(left_us_, kSliceUsMax));
  const int64_t spent_us = parts_.clock.monotonic_us() - start_us;
  parts_.gauges.expire_cycle_us.fetch_add(static_cast<uint64_t>(spent_us));
  left_us_ -= spent_us;
  expired_ += report.expired;
  parts_.keyspace.expiry_statistics().expired_actively.fetch_add(report.expired);
  if (!report.timed_out) return;
  if (left_us_ <= 0) {
    parts_.keyspace.expiry_statistics().ticks_cut_by_time.fetch_add(1);
    return;
  }
  is_posted_ = true;
  parts_.post([this] {
    is_posted_ = false;
    if (may_expire() && !parts_.state.is_replica) run_slice();
  });
}

void KeyExpiry::end_period() {
  if (expiring_ > 0) {
    auto& ratio = parts_.keyspace.expiry_statistics().stale_ratio;
    const double before = ratio.load();
    // expiring_ counts the keys that had an expiry at the start of the period. expired_ also counts
    // keys that were created later and have expired. So the ratio is limited to 1.
    const double seen =
        std::min(1.0, static_cast<double>(expired_) / static_cast<double>(expiring_));
    ratio.store(before + kSmoothing * (seen - before));
  }
  expired_ = 0;
  expiring_ = 0;
  for (unsigned i = 0; i < parts_.keyspace.database_count(); ++i) {
    expiring_ += parts_.keyspace.expires_count(i);
  }
}

void KeyExpiry::expire_own() {
  constexpr int64_t kDurationUsMax = 5000;
  const int64_t start_us = parts_.clock.monotonic_us();
  while (!parts_.own_expiries.tick(parts_.keyspace, parts_.clock.wall_ms())) {
    if (parts_.clock.monotonic_us() - start_us > kDurationUsMax) break;
  }
}

}  // namespace server
