// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_statistics.h"

#include "core/bloom/scalable_filter.h"

namespace server {
namespace {

using core::keyspace::Entry;
using core::keyspace::Keyspace;
using core::keyspace::kStripeCount;
using core::keyspace::LockMode;
using core::keyspace::StripeMask;

void add(BloomTotals& totals, const core::bloom::ScalableFilter& filter) {
  ++totals.object_count;
  totals.layer_count += filter.layer_count();
  totals.item_count += filter.item_count();
  totals.capacity += filter.capacity();
  totals.memory_bytes += filter.size_bytes();
}

bool has_keys(const Keyspace& keyspace, unsigned stripe) {
  for (unsigned database = 0; database < keyspace.database_count(); ++database) {
    if (keyspace.database_of_stripe(stripe, database).size.load(std::memory_order_relaxed) != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

BloomTotals bloom_totals(Keyspace& keyspace, core::keyspace::Locking locking) {
  BloomTotals totals;
  const bool take = locking == core::keyspace::Locking::kTake;
  for (unsigned stripe = 0; stripe < kStripeCount; ++stripe) {
    if (!has_keys(keyspace, stripe)) continue;
    const auto lock = keyspace.lock(take ? StripeMask{1} << stripe : 0, LockMode::kShared);
    for (unsigned database = 0; database < keyspace.database_count(); ++database) {
      const auto& share = keyspace.database_of_stripe(stripe, database);
      if (share.table == nullptr) continue;
      share.table->for_each([&](const Entry& entry) {
        if (entry.is_filter()) add(totals, entry.filter());
      });
    }
  }
  return totals;
}

}  // namespace server
