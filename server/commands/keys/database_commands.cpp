// SPDX-License-Identifier: MIT
//
// The commands on whole databases: DBSIZE, FLUSHDB, FLUSHALL and SWAPDB.
#include <optional>

#include "core/keyspace/reclaimer.h"
#include "server/commands/families.h"
#include "server/commands/keys/database_index.h"
#include "server/dispatch/context.h"
#include "server/dispatch/own_keys.h"

namespace server {
namespace {

using core::keyspace::DetachedTables;

/* DBSIZE */
// As in Redis, expired keys count until they are deleted.
void dbsize(Context& ctx) {
  ctx.reply.integer(static_cast<int64_t>(OwnKeys(ctx).count()));
}

// Returns whether the reply must wait until the memory has been freed; nullopt if the arguments are
// invalid.
std::optional<bool> parse_flush(Arguments args) {
  if (args.size() == 1) return false;
  if (args.size() == 2 && protocol::equals_ignore_case(args[1], "ASYNC")) return false;
  if (args.size() == 2 && protocol::equals_ignore_case(args[1], "SYNC")) return true;
  return std::nullopt;
}

enum class Flushed : uint8_t { kDatabase, kAll };

/* FLUSHDB [ASYNC | SYNC] | FLUSHALL [ASYNC | SYNC] */
// Removes the tables from the keyspace under all locks. The removed tables are freed without a
// lock.
void flush(Context& ctx, Flushed flushed) {
  const auto waits = parse_flush(ctx.args);
  if (!waits) return ctx.reply.error(kSyntaxError);
  DetachedTables tables;
  {
    const auto lock = ctx.lock_everything();
    tables = flushed == Flushed::kAll ? ctx.keyspace().flush_all()
                                      : ctx.keyspace().flush(ctx.database());
    if (flushed == Flushed::kAll) ++ctx.environment.state.flushes;
    journal_command(ctx);
  }
  uint64_t removed = 0;
  for (const auto& table : tables) removed += table->size();
  ctx.count_changes(removed);
  // With the option SYNC, this thread frees the tables before the reply, and without a lock unless
  // it is inside EXEC. Otherwise the reclaimer frees them in the background.
  if (*waits) {
    tables.clear();
  } else {
    ctx.environment.reclaimer.drop(std::move(tables));
  }
  ctx.reply.ok();
}

bool is_out_of_range(const core::Result<unsigned>& index) {
  return !index && index.error().code == core::ErrorCode::kOutOfRange;
}

/* SWAPDB index1 index2 */
void swapdb(Context& ctx) {
  if (has_one_database(ctx)) {
    return ctx.reply.error(not_in_cluster("SWAPDB"));
  }
  const unsigned count = ctx.keyspace().database_count();
  const auto first = parse_database_index(ctx.args[1], count);
  const auto second = parse_database_index(ctx.args[2], count);
  // The error for an index that is not a number takes precedence over the error for an index out of
  // range.
  if (!first && !is_out_of_range(first)) return ctx.reply.error("ERR invalid first DB index");
  if (!second && !is_out_of_range(second)) return ctx.reply.error("ERR invalid second DB index");
  if (!first || !second) return ctx.reply.error(kNotADatabase);
  {
    const auto lock = ctx.lock_everything();
    ctx.keyspace().swap(*first, *second, ctx.now_ms);
    journal_command(ctx);
    ctx.count_changes(1);
  }
  ctx.reply.ok();
}

const Command kDatabaseRows[] = {
    {.name = "dbsize",
     .arity = 1,
     .flags = kReadOnly | kFast | kWholeKeyspace,
     .categories = kKeyspace,
     .summary = "Counts the keys of the database",
     .complexity = "O(1)",
     .tips = "request_policy:all_shards response_policy:agg_sum",
     .handler = dbsize},
    {.name = "flushall",
     .arity = -1,
     .flags = kWrite | kWholeKeyspace,
     .summary = "Deletes the keys of all databases",
     .complexity = "O(N) where N is the number of keys; values are freed by another thread",
     .syntax = "[ASYNC | SYNC]",
     .tips = "request_policy:all_shards response_policy:all_succeeded",
     .handler = calls<flush, Flushed::kAll>,
     .journalled = Journalled::kEffects},
    {.name = "flushdb",
     .arity = -1,
     .flags = kWrite | kWholeKeyspace,
     .summary = "Deletes the keys of the database",
     .complexity =
         "O(N) where N is the number of keys of the database; values are freed by another thread",
     .syntax = "[ASYNC | SYNC]",
     .tips = "request_policy:all_shards response_policy:all_succeeded",
     .handler = calls<flush, Flushed::kDatabase>,
     .journalled = Journalled::kEffects},
    {.name = "swapdb",
     .arity = 3,
     .flags = kWrite | kFast | kWholeKeyspace,
     .since = "4.0.0",
     .summary = "Exchanges the keys of two databases",
     .complexity =
         "O(N) where N is the count of clients watching or blocking on keys from both databases",
     .syntax = "index1:integer index2:integer",
     .handler = swapdb,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kDatabaseCommands{
    {.categories = kKeyspace | kDangerous, .group = "server", .since = "1.0.0"}, kDatabaseRows};

}  // namespace server
