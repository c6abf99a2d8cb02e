// SPDX-License-Identifier: MIT
//
// MEMORY: reports how much memory a key and the process use, and diagnoses problems of memory use.
#include <fmt/format.h>

#include <string>

#include "core/bloom/arrays/huge_pages.h"
#include "server/base/process/allocator.h"
#include "server/commands/families.h"
#include "server/commands/info/memory_figures.h"
#include "server/commands/pair_writer.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

// MEMORY DOCTOR reports no ratios if fewer bytes than this number are in use. Such ratios would be
// meaningless, because the program itself uses most of the memory.
constexpr uint64_t kSmallBytes = uint64_t{5} << 20;
// As in Redis, MEMORY DOCTOR reports a problem if a ratio, such as that of peak memory to used
// memory, exceeds this value.
constexpr double kHighRatio = 1.4;

double megabytes(uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

// Returns the bytes of the entry and of its value, plus the bytes of the hash table divided by the
// number of its entries.
uint64_t usage_bytes(const Context& ctx, const KeyRef& key, const Entry& entry) {
  const auto& table =
      ctx.keyspace().database_of_stripe(core::keyspace::stripe_of(key.hash), ctx.database()).table;
  return entry.memory_bytes() + (table->memory_bytes() + table->size() - 1) / table->size();
}

/* MEMORY USAGE key [SAMPLES samples] */
void memory_usage(Context& ctx) {
  protocol::ArgumentCursor cursor(ctx.args.subspan(3));
  while (!cursor.done()) {
    // The option SAMPLES is accepted for compatibility. No value has parts that would need
    // sampling.
    if (!cursor.eat_keyword("SAMPLES") || cursor.take_int64() < 0) cursor.fail(kSyntaxError);
  }
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  const KeyRef key = ctx.key(2);
  const auto lock = ctx.lock(key);
  // As in Redis, the lookup counts neither as a hit nor as a use of the key.
  const Entry* entry = ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms);
  if (entry == nullptr) return ctx.reply.null();
  ctx.reply.integer(static_cast<int64_t>(usage_bytes(ctx, key, *entry)));
}

// The overhead of slots is 0, because there are no data structures per slot.
void write_database(protocol::ReplyWriter& reply, const MemoryFigures::DatabaseBytes& database) {
  reply.bulk(fmt::format("db.{}", database.index));
  reply.map(3);
  PairWriter pairs(reply);
  pairs.integer("overhead.hashtable.main", database.tables);
  pairs.integer("overhead.hashtable.expires", database.expiries);
  pairs.integer("overhead.hashtable.slot-to-keys", 0);
}

void write_totals(protocol::ReplyWriter& reply, PairWriter& stats, const MemoryFigures& figures) {
  stats.integer("peak.allocated", figures.peak_bytes);
  stats.integer("total.allocated", figures.used_bytes);
  stats.integer("startup.allocated", figures.startup_bytes);
  stats.integer("replication.backlog", figures.backlog_bytes);
  stats.integer("clients.slaves", figures.replica_bytes);
  stats.integer("clients.normal", figures.client_bytes);
  stats.integer("cluster.links", 0);
  stats.integer("aof.buffer", figures.log_bytes);
  stats.integer("lua.caches", 0);
  stats.integer("functions.caches", 0);
  for (const auto& database : figures.databases) write_database(reply, database);
  stats.integer("overhead.total", figures.overhead_bytes());
  stats.integer("keys.count", figures.key_count);
  stats.integer("keys.bytes-per-key",
                figures.key_count == 0 ? 0 : figures.grown_bytes() / figures.key_count);
  stats.integer("dataset.bytes", figures.dataset_bytes());
  stats.redis_number("dataset.percentage",
                     100 * ratio_of(figures.dataset_bytes(), figures.grown_bytes()));
  stats.redis_number("peak.percentage", 100 * ratio_of(figures.used_bytes, figures.peak_bytes));
}

void write_fragmentation(PairWriter& stats, const MemoryFigures& figures) {
  const AllocatorFigures& allocator = figures.allocator;
  stats.integer("allocator.allocated", allocator.allocated_bytes);
  stats.integer("allocator.active", allocator.active_bytes);
  stats.integer("allocator.resident", allocator.resident_bytes);
  stats.redis_number("allocator-fragmentation.ratio",
                     ratio_of(allocator.active_bytes, allocator.allocated_bytes));
  stats.integer("allocator-fragmentation.bytes",
                signed_difference(allocator.active_bytes, allocator.allocated_bytes));
  stats.redis_number("allocator-rss.ratio",
                     ratio_of(allocator.resident_bytes, allocator.active_bytes));
  stats.integer("allocator-rss.bytes",
                signed_difference(allocator.resident_bytes, allocator.active_bytes));
  stats.redis_number("rss-overhead.ratio",
                     ratio_of(figures.resident.total_bytes, allocator.resident_bytes));
  stats.integer("rss-overhead.bytes",
                signed_difference(figures.resident.total_bytes, allocator.resident_bytes));
  stats.redis_number("fragmentation", ratio_of(figures.resident.total_bytes, figures.used_bytes));
  stats.integer("fragmentation.bytes",
                signed_difference(figures.resident.total_bytes, figures.used_bytes));
}

// Writes the components of total.allocated and of process.resident. The values heap.allocated,
// filters.reserved, filters.kept-for-child and buffers.mapped, minus lazyfree.pending, add up to
// total.allocated. The resident bytes of the heap, filters, buffers, files, stacks and static
// variables add up to process.resident. filters.huge-pages is a part of filters.resident.
void write_parts(PairWriter& stats, const MemoryFigures& figures) {
  stats.integer("heap.allocated", figures.parts.heap_bytes);
  stats.integer("filters.reserved", figures.parts.array_bytes);
  stats.integer("filters.kept-for-child", figures.parts.kept_array_bytes);
  stats.integer("buffers.mapped", figures.parts.buffer_bytes);
  stats.integer("lazyfree.pending", figures.parts.pending_bytes);
  stats.integer("filters.resident", figures.resident_array_bytes);
  stats.integer("filters.huge-pages", core::bloom::huge_array_bytes());
  stats.integer("files.resident", figures.resident.file_bytes);
  stats.integer("process.resident", figures.resident.total_bytes);
}

/* MEMORY STATS */
void memory_stats(Context& ctx) {
  const MemoryFigures figures = measure_memory(ctx.services, ctx.locking());
  ctx.reply.map(36 + figures.databases.size());
  PairWriter stats(ctx.reply);
  write_totals(ctx.reply, stats, figures);
  write_fragmentation(stats, figures);
  write_parts(stats, figures);
}

/* MEMORY DOCTOR */
void memory_doctor(Context& ctx) {
  const MemoryFigures figures = measure_memory(ctx.services, ctx.locking());
  std::string report;
  const std::string used = fmt::format("{:.1f} MB", megabytes(figures.used_bytes));
  if (figures.used_bytes < kSmallBytes) {
    return ctx.reply.verbatim(fmt::format("Only {} are in use: too little for a report.\n", used),
                              "txt");
  }
  if (ratio_of(figures.peak_bytes, figures.used_bytes) > kHighRatio) {
    report += fmt::format(
        "Peak: {:.1f} MB were in use at some time, {} are now. The process may still hold what it "
        "needed then; MEMORY PURGE gives free pages back.\n",
        megabytes(figures.peak_bytes), used);
  }
  const AllocatorFigures& allocator = figures.allocator;
  if (ratio_of(allocator.active_bytes, allocator.allocated_bytes) > kHighRatio) {
    report += fmt::format(
        "Fragmentation: {:.1f} MB lie in pages of {:.1f} MB, which are only partly used, as after "
        "many keys were deleted. New keys fill them; a restart packs them.\n",
        megabytes(allocator.allocated_bytes), megabytes(allocator.active_bytes));
  }
  if (ratio_of(figures.resident.total_bytes, figures.used_bytes) > kHighRatio) {
    report += fmt::format(
        "Resident set: the process holds {:.1f} MB and uses {}. MEMORY PURGE gives free pages "
        "back; if it does not help, MEMORY STATS lists their uses.\n",
        megabytes(figures.resident.total_bytes), used);
  }
  if (report.empty()) report = fmt::format("No memory problem was found, {} are in use.\n", used);
  ctx.reply.verbatim(report, "txt");
}

/* MEMORY MALLOC-STATS */
void memory_malloc_stats(Context& ctx) {
  const std::string report = allocator_report();
  ctx.reply.verbatim(report.empty() ? "The allocator in use has no report.\n" : report, "txt");
}

/* MEMORY PURGE */
void memory_purge(Context& ctx) {
  purge_allocator();
  ctx.reply.ok();
}

const Command kMemorySubcommands[] = {
    {.name = "doctor",
     .arity = 2,
     .flags = kWholeKeyspace,
     .summary = "Looks for problems with memory",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
     .handler = memory_doctor},
    {.name = "malloc-stats",
     .arity = 2,
     .summary = "Prints the allocator's own report",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
     .handler = memory_malloc_stats},
    {.name = "purge",
     .arity = 2,
     .summary = "Gives unused pages back to the system",
     .complexity = "O(N) where N is the memory that can be given back",
     .tips = "request_policy:all_shards response_policy:all_succeeded",
     .handler = memory_purge},
    {.name = "stats",
     .arity = 2,
     .flags = kWholeKeyspace,
     .summary = "Returns the uses of memory",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
     .handler = memory_stats},
    {.name = "usage",
     .arity = -3,
     .flags = kReadOnly,
     .keys = {{{2, 2, 1, kKeyRo}, {}}},
     .summary = "Returns the bytes that a key and its value use",
     .syntax = "key [SAMPLES samples]",
     .handler = memory_usage},
};

const Command kMemoryRows[] = {
    {.name = "memory",
     .summary = "Groups the commands about memory",
     .subcommands = kMemorySubcommands},
};

}  // namespace

const CommandFamily kMemoryCommands{{.group = "server", .since = "4.0.0", .complexity = "O(1)"},
                                    kMemoryRows};

}  // namespace server
