// SPDX-License-Identifier: MIT
#include "core/keyspace/expiry.h"

namespace core::keyspace {
namespace {

// Number of keys that are deleted while a lock is held. These deletions take about twenty
// microseconds.
constexpr size_t kKeysPerLock = 64;

}  // namespace

ExpiryReport ActiveExpiry::run(int64_t duration_us_max) {
  ExpiryReport report;
  const int64_t now_ms = clock_.wall_ms();
  const int64_t deadline_us = clock_.monotonic_us() + duration_us_max;
  const size_t table_count = size_t{kStripeCount} * keyspace_.database_count();
  for (size_t i = 0; i < table_count; ++i) {
    const Database& share = keyspace_.database_of_stripe(stripe_, database_);
    while (share.expiry_index.next_ms() < now_ms) {
      report.timed_out = clock_.monotonic_us() >= deadline_us;
      if (report.timed_out) return report;
      const StripeLock guard = keyspace_.lock(StripeMask{1} << stripe_, LockMode::kExclusive);
      report.expired += keyspace_.expire_due(stripe_, database_, now_ms, kKeysPerLock);
    }
    advance();
  }
  return report;
}

void ActiveExpiry::advance() {
  stripe_ = (stripe_ + 1) % kStripeCount;
  if (stripe_ == 0) database_ = (database_ + 1) % keyspace_.database_count();
}

}  // namespace core::keyspace
