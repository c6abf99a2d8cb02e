// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_statistics.h"

#include <limits>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/layout_counts.h"

namespace server {

BloomTotals bloom_totals(core::keyspace::Keyspace& keyspace, core::keyspace::Locking locking) {
  BloomTotals totals;
  // Without this check, INFO would look at all keys of a server that has no filter.
  if (!core::keyspace::LayoutCounts::of_process().any()) return totals;
  const core::keyspace::ScanOptions all{.count = std::numeric_limits<size_t>::max(),
                                        .locking = locking};
  for (unsigned database = 0; database < keyspace.database_count(); ++database) {
    keyspace.scan(database, all, [&](const core::keyspace::Entry& entry) {
      if (!entry.is_filter()) return;
      const core::bloom::ScalableFilter& filter = entry.filter();
      ++totals.object_count;
      totals.layer_count += filter.layer_count();
      totals.item_count = core::bloom::add_counts(totals.item_count, filter.item_count());
      totals.capacity = core::bloom::add_counts(totals.capacity, filter.capacity());
      totals.memory_bytes += filter.size_bytes();
    });
  }
  return totals;
}

}  // namespace server
