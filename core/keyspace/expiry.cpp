// SPDX-License-Identifier: MIT
#include "core/keyspace/expiry.h"

namespace core::keyspace {

namespace {

// What is looked at under one lock: a few microseconds' worth.
constexpr size_t kBiteEntriesMax = 64;
constexpr size_t kBiteStepsMax = 64;
// Weight of the newest tick in the stale ratio.
constexpr double kSmoothing = 0.05;

}  // namespace

ExpiryReport ActiveExpiry::tick(const ExpiryBudget& budget) {
  ExpiryReport report;
  const int64_t now_ms = clock_.wall_ms();
  const int64_t deadline_us = clock_.monotonic_us() + budget.duration_us_max;
  // One more than the number of tables: the first may be entered in its middle.
  size_t tables_left = size_t{kStripeCount} * keyspace_.database_count() + 1;
  while (tables_left > 0) {
    const Database& share = keyspace_.database_of_stripe(stripe_, database_);
    if (cursor_ == 0 && share.expires.load(std::memory_order_relaxed) == 0) {
      advance();
      --tables_left;
      continue;
    }
    report.timed_out = clock_.monotonic_us() >= deadline_us;
    if (report.timed_out || report.looked_at >= budget.entries_max) {
      report.exhausted = true;
      break;
    }
    expire_bite(now_ms, report);
    if (cursor_ == 0) {
      advance();
      --tables_left;
    }
  }
  publish_ttl();
  ExpiryStatistics& statistics = keyspace_.expiry_statistics();
  if (report.timed_out) statistics.ticks_cut_by_time.fetch_add(1);
  if (report.expiring > 0) {
    const double ratio = static_cast<double>(report.expired) / static_cast<double>(report.expiring);
    const double before = statistics.stale_ratio.load();
    statistics.stale_ratio.store(before + kSmoothing * (ratio - before));
  }
  return report;
}

void ActiveExpiry::expire_bite(int64_t now_ms, ExpiryReport& report) {
  const StripeLock guard = keyspace_.lock(StripeMask{1} << stripe_, LockMode::kExclusive);
  const Table* table = keyspace_.database_of_stripe(stripe_, database_).table.get();
  if (table == nullptr) {
    cursor_ = 0;
    return;
  }
  size_t looked_at = 0;
  size_t steps = 0;
  doomed_.clear();
  do {
    cursor_ = table->scan(cursor_, [&](Entry& entry) {
      ++looked_at;
      if (!entry.has_expiry()) return;
      ++report.expiring;
      if (entry.expired(now_ms)) return doomed_.push_back(&entry);
      ttl_.sum_ms += static_cast<double>(entry.expires_at_ms() - now_ms);
      ++ttl_.count;
    });
  } while (cursor_ != 0 && looked_at < kBiteEntriesMax && ++steps < kBiteStepsMax);
  for (const Entry* entry : doomed_) keyspace_.expire(database_, keyspace_.ref(entry->key()));
  report.looked_at += looked_at;
  report.expired += doomed_.size();
}

void ActiveExpiry::advance() {
  cursor_ = 0;
  stripe_ = (stripe_ + 1) % kStripeCount;
  if (stripe_ != 0) return;
  publish_ttl();
  database_ = (database_ + 1) % keyspace_.database_count();
}

void ActiveExpiry::publish_ttl() {
  const bool any_expiring = keyspace_.expires_count(database_) > 0;
  keyspace_.expiry_statistics().observe(database_, ttl_, any_expiring);
  ttl_ = TtlSample{};
}

}  // namespace core::keyspace
