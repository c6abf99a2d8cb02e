// SPDX-License-Identifier: MIT
//
// The commands MULTI, EXEC, DISCARD, WATCH and UNWATCH. A transaction runs under the locks of all
// its keys, so that other threads see all of its effects or none.
#include "server/commands/connection/transaction_commands.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "core/memory/release_storage.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/dispatcher.h"
#include "server/replication/stream/replication.h"

namespace server {
namespace {

// Returns the stripes that EXEC must lock: the stripes of the watched keys, and of the keys that
// the queued commands use.
StripeMask stripes_of(const Context& ctx, const Transaction& transaction) {
  if ((transaction.queued_flags & kWholeKeyspace) != 0) return core::keyspace::kAllStripes;
  StripeMask mask = 0;
  for (const QueuedCommand& queued : transaction.queue) {
    const std::vector<std::string_view> args = queued.words();
    for_each_key(*queued.command->row, args, [&](size_t index, uint16_t) {
      mask |= core::keyspace::Keyspace::mask_of(ctx.keyspace().ref(args[index]));
    });
  }
  for (const auto& watched : transaction.watched) {
    mask |= core::keyspace::Keyspace::mask_of(ctx.keyspace().ref(watched.key));
  }
  return mask;
}

// Returns whether a watched key has changed since WATCH, and ends the watches. REQUIRES: the locks
// of the watched keys.
bool end_watches(const Context& ctx, Transaction& transaction) {
  if (transaction.watch_flag == nullptr) return false;
  bool changed = transaction.watch_flag->dirty.load(std::memory_order_acquire);
  for (const auto& watched : transaction.watched) {
    const KeyRef key = ctx.keyspace().ref(watched.key);
    const auto database = static_cast<unsigned>(watched.database);
    changed = changed ||
              ctx.keyspace().watched_key_expired(database, key, transaction.watch_flag, ctx.now_ms);
    ctx.keyspace().unwatch(database, key, transaction.watch_flag);
  }
  return changed;
}

/* MULTI */
void multi(Context& ctx) {
  if (ctx.session.transaction.active) return ctx.reply.error("ERR MULTI calls can not be nested");
  ctx.session.transaction.active = true;
  ctx.session.publish_transaction();
  ctx.reply.ok();
}

/* EXEC */
void exec(Context& ctx) {
  Session& session = ctx.session;
  if (!session.transaction.active) return ctx.reply.error(kExecWithoutMulti);
  if (session.transaction.aborted) {
    discard_transaction(ctx.keyspace(), session);
    return ctx.reply.error(kTransactionDiscarded);
  }
  Transaction transaction = std::move(session.transaction);
  session.transaction = Transaction{};
  session.publish_transaction();
  session.client->watched_keys = 0;
  session.client->watched_bytes = 0;

  // Like a save or a role change, EXEC locks the replication stream's mutex before the stripes, so
  // that no deadlock occurs. A replay of the stream or log already holds this mutex.
  std::unique_lock<OrderedMutex> stream;
  if ((transaction.queued_flags & kWholeKeyspace) != 0 &&
      session.origin == CommandOrigin::kClient) {
    stream = ctx.services.replication.hold(core::keyspace::Locking::kTake);
  }
  const bool exclusive =
      (transaction.queued_flags & kWrite) != 0 || transaction.watch_flag != nullptr;
  const StripeLock lock = ctx.keyspace().lock(
      stripes_of(ctx, transaction),
      exclusive ? core::keyspace::LockMode::kExclusive : core::keyspace::LockMode::kShared);
  if (end_watches(ctx, transaction)) return ctx.reply.null_array();
  const persistence::Journal::Group group(ctx.services.journal);
  ctx.reply.array(transaction.queue.size());
  // A queued command may close the connection, so queued commands write to EXEC's CommandResult.
  Context inner({ctx.services, ctx.counters, session, ctx.dispatcher}, ctx.request, ctx.reply,
                ctx.now_ms, ctx.result);
  inner.in_exec = true;
  for (QueuedCommand& queued : transaction.queue) {
    // A queued HELLO changes the protocol of the replies after it.
    inner.reply.set_version(session.client->resp);
    ctx.dispatcher.run_queued(inner, queued);
    // A stored value is a copy, so big arguments would otherwise take memory twice. Others are
    // freed later, because the stripes are locked here.
    constexpr size_t kBigBytes = size_t{64} << 10;
    const auto is_big = [](const std::string& argument) { return argument.size() >= kBigBytes; };
    if (std::ranges::any_of(queued.arguments, is_big)) core::release_storage(queued.arguments);
  }
  ctx.expired_keys = std::move(inner.expired_keys);
}

/* DISCARD */
void discard(Context& ctx) {
  if (!ctx.session.transaction.active) return ctx.reply.error("ERR DISCARD without MULTI");
  discard_transaction(ctx.keyspace(), ctx.session);
  ctx.reply.ok();
}

/* WATCH key [key ...] */
void watch(Context& ctx) {
  Transaction& transaction = ctx.session.transaction;
  if (transaction.active) return ctx.reply.error("ERR WATCH inside MULTI is not allowed");
  if (transaction.watch_flag == nullptr) {
    transaction.watch_flag = std::make_shared<core::keyspace::WatchFlag>();
  }
  for (const std::string_view name : ctx.args.subspan(1)) {
    const KeyRef key = ctx.keyspace().ref(name);
    const auto lock = ctx.keyspace().lock_exclusive(key);
    if (ctx.keyspace().watch(ctx.database(), key, transaction.watch_flag, ctx.now_ms)) {
      transaction.watched.push_back({ctx.client.database, std::string(name)});
      // The size of a watched key's name counts twice, because the keyspace's table of watches
      // stores a second copy of the name.
      ctx.client.watched_bytes += sizeof(Transaction::WatchedKey) + 2 * name.size();
    }
  }
  ctx.client.watched_keys = transaction.watched.size();
  ctx.reply.ok();
}

/* UNWATCH */
void unwatch(Context& ctx) {
  // Inside EXEC the command UNWATCH does nothing, because the watches have already ended.
  if (!ctx.in_exec) unwatch_all(ctx.keyspace(), ctx.session);
  ctx.reply.ok();
}

constexpr uint32_t kCommon = kNoScript | kLoading | kStale | kFast | kAllowBusy;

const Command kTransactionRows[] = {
    {.name = "multi",
     .arity = 1,
     .flags = kCommon | kImmediate | kInJournal,
     .since = "1.2.0",
     .summary = "Starts a transaction",
     .handler = multi},
    {.name = "exec",
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kSkipSlowlog | kImmediate | kRunsQueue | kInJournal,
     .since = "1.2.0",
     .summary = "Runs all queued commands as one",
     .complexity = "Depends on the commands in the transaction",
     .handler = exec},
    {.name = "discard",
     .arity = 1,
     .flags = kCommon | kImmediate | kInJournal,
     .since = "2.0.0",
     .summary = "Drops the queued commands",
     .complexity = "O(N), when N is the number of queued commands",
     .handler = discard},
    {.name = "watch",
     .arity = -2,
     .flags = kCommon | kImmediate,
     .keys = keys_to_end(1, 1, kKeyRo),
     .since = "2.2.0",
     .summary = "Lets EXEC run only if the keys have not changed until then",
     .complexity = "O(1) for every key",
     .syntax = "key ...",
     .handler = watch},
    {.name = "unwatch",
     .arity = 1,
     .flags = kCommon,
     .since = "2.2.0",
     .summary = "Forgets the watched keys",
     .handler = unwatch},
};

}  // namespace

const CommandFamily kTransactionCommands{
    {.categories = kTransaction, .group = "transactions", .complexity = "O(1)"}, kTransactionRows};

}  // namespace server
