// SPDX-License-Identifier: MIT
//
// Writes the sections of INFO about the data: keyspace, and the sections of the Bloom filters.
#include "core/keyspace/keyspace.h"
#include "server/commands/bloom/bloom_statistics.h"
#include "server/commands/info/section.h"
#include "server/commands/services.h"

namespace server::info {

void write_keyspace(const Source& source, Lines& lines) {
  const core::keyspace::Keyspace& keyspace = source.services.keyspace;
  for (unsigned database = 0; database < keyspace.database_count(); ++database) {
    const uint64_t keys = keyspace.db_size(database);
    if (keys == 0) continue;
    lines.field(fmt::format("db{}", database),
                fmt::format("keys={},expires={},avg_ttl={}", keys, keyspace.expires_count(database),
                            average_ttl_ms(keyspace, database, source.now_ms)));
  }
}

void write_bloom(const Source& source, Lines& lines) {
  const BloomTotals totals = bloom_totals(source.services.keyspace, source.locking);
  lines.field("bf_bloom_total_memory_bytes", totals.memory_bytes);
  lines.field("bf_bloom_num_objects", totals.object_count);
  lines.field("bf_bloom_num_filters_across_objects", totals.layer_count);
  lines.field("bf_bloom_num_items_across_objects", totals.item_count);
  lines.field("bf_bloom_capacity_across_objects", totals.capacity);
}

void write_bloom_objects(const Source& source, Lines& lines) {
  const BloomTotals totals = bloom_totals(source.services.keyspace, source.locking);
  lines.field("bloom_num_objects", totals.object_count);
  lines.field("bloom_total_memory_bytes", totals.memory_bytes);
}

// Writes zeros for the defragmentation counters, because Bloomery never moves bit arrays to reduce
// fragmentation.
void write_bloom_defrag(const Source&, Lines& lines) {
  lines.zeros({"bf_bloom_defrag_hits", "bf_bloom_defrag_misses"});
}

}  // namespace server::info
