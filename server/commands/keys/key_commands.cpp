// SPDX-License-Identifier: MIT
//
// The commands on keys of any type: DEL, UNLINK, EXISTS, TYPE, TOUCH, RENAME, RENAMENX, COPY and
// MOVE.
#include <vector>

#include "core/keyspace/reclaimer.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_journal.h"
#include "server/commands/families.h"
#include "server/commands/keys/database_index.h"
#include "server/commands/keys/value_type.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

constexpr std::string_view kSameObject = "ERR source and destination objects are the same";

/* DEL key [key ...] | UNLINK key [key ...] */
void remove(Context& ctx) {
  // DEL and UNLINK do the same: values that take long to free always go to the reclaimer.
  std::vector<EntryPtr> heavy;
  int64_t removed = 0;
  {
    const auto lock = ctx.lock_keys();
    for (size_t i = 1; i < ctx.args.size(); ++i) {
      const KeyRef key = ctx.key(i);
      if (ctx.keyspace().find_for_write(ctx.database(), key, ctx.expiry_now_ms) == nullptr)
        continue;
      EntryPtr entry = ctx.keyspace().erase(ctx.database(), key);
      if (entry->is_heavy()) heavy.push_back(std::move(entry));
      ctx.commit(key, KeyEvent::kDel);
      ++removed;
    }
  }
  for (EntryPtr& entry : heavy) ctx.environment.reclaimer.drop(std::move(entry));
  ctx.reply.integer(removed);
}

/* EXISTS key [key ...] */
void exists(Context& ctx) {
  const auto lock = ctx.lock_keys();
  int64_t found = 0;
  for (size_t i = 1; i < ctx.args.size(); ++i) {
    if (ctx.peek(ctx.key(i)) != nullptr) ++found;
  }
  ctx.reply.integer(found);
}

/* TYPE key */
void type(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const Entry* entry = ctx.peek(key);
  ctx.reply.simple(entry == nullptr ? "none" : type_name(*entry));
}

/* TOUCH key [key ...] */
void touch(Context& ctx) {
  const auto lock = ctx.lock_keys();
  int64_t touched = 0;
  for (size_t i = 1; i < ctx.args.size(); ++i) {
    Entry* entry = ctx.peek(ctx.key(i));
    if (entry == nullptr) continue;
    // TOUCH names the key explicitly, so CLIENT NO-TOUCH does not apply.
    record_access(ctx, *entry);
    ++touched;
  }
  ctx.reply.integer(touched);
}

enum class IfTaken : uint8_t { kReplace, kRefuse };

/* RENAME key newkey | RENAMENX key newkey */
// RENAME replies OK even if both names are equal. RENAMENX replies whether the key was renamed.
void rename_key(Context& ctx, IfTaken if_taken) {
  const KeyRef from = ctx.key(1);
  const KeyRef to = ctx.key(2);
  const auto answer = [&](bool renamed) {
    if (if_taken == IfTaken::kReplace) return ctx.reply.ok();
    ctx.reply.integer(renamed ? 1 : 0);
  };
  StripeLock lock = ctx.lock_keys();
  if (ctx.find(from) == nullptr) return ctx.reply.error(kNoSuchKey);
  if (from.name == to.name) return answer(false);
  // The destination is looked up even if it may be replaced, so that an expired key publishes its
  // event.
  const bool taken = ctx.find(to) != nullptr;
  if (taken && if_taken == IfTaken::kRefuse) return answer(false);
  EntryPtr replaced = ctx.keyspace().rename(ctx.database(), from, to);
  ctx.notify(KeyEvent::kNew, ctx.database(), to);
  ctx.commit(from, KeyEvent::kRenameFrom);
  ctx.commit(to, KeyEvent::kRenameTo);
  lock.unlock();
  ctx.environment.reclaimer.drop(std::move(replaced));
  answer(true);
}

struct CopyOptions {
  unsigned database = 0;
  bool replace = false;
};

core::Result<CopyOptions> parse_copy(const Context& ctx) {
  CopyOptions options{.database = ctx.database()};
  protocol::ArgumentCursor cursor(ctx.args.subspan(3));
  while (!cursor.done()) {
    if (cursor.eat_keyword("REPLACE")) {
      options.replace = true;
    } else if (cursor.remaining() >= 2 && cursor.eat_keyword("DB")) {
      const auto index = parse_database_index(cursor.next(), ctx.keyspace().database_count());
      if (!index) return index.error();
      options.database = *index;
    } else {
      return core::Error{std::string(kSyntaxError)};
    }
  }
  if (options.database != 0 && has_one_database(ctx)) {
    return core::Error{"ERR Copying to another database is not allowed in cluster mode"};
  }
  return options;
}

// Returns a deep copy of the entry; null if memory is short.
EntryPtr copy_of(const Context& ctx, Entry& source, std::string_view name) {
  // If a forked child may read the source filter, detach_source() also copies the filter's arrays.
  // So memory for two copies is needed.
  const size_t copies = source.is_filter() && ctx.may_have_child() ? 2 : 1;
  if (!ctx.admission().memory_suffices(copies * source.memory_bytes())) return nullptr;
  if (source.is_filter() && !detach_source(ctx, source.filter())) return nullptr;
  EntryPtr copy = source.clone(name);
  if (copy != nullptr) copy->touch(ctx.access_clock_s());
  return copy;
}

/* COPY source destination [DB destination-db] [REPLACE] */
void copy(Context& ctx) {
  const auto options = parse_copy(ctx);
  if (!options) return ctx.reply.error(options.error().message);
  const KeyRef from = ctx.key(1);
  const KeyRef to = ctx.key(2);
  if (options->database == ctx.database() && from.name == to.name) {
    return ctx.reply.error(kSameObject);
  }
  // A key's name has the same stripe in all databases. So these locks cover both names in both
  // databases.
  StripeLock lock = ctx.lock_keys();
  Entry* source = ctx.find(from);
  ctx.count_lookup(from, source != nullptr);
  if (source == nullptr) return ctx.reply.integer(0);
  const bool taken =
      ctx.keyspace().find_for_write(options->database, to, ctx.expiry_now_ms) != nullptr;
  if (taken && !options->replace) return ctx.reply.integer(0);
  EntryPtr made = copy_of(ctx, *source, to.name);
  if (made == nullptr) return ctx.reply.error(ctx.admission().memory_refusal());
  if (made->is_filter()) announce_copy(ctx, made->filter());
  EntryPtr replaced = ctx.keyspace().put(options->database, to, std::move(made));
  ctx.notify(KeyEvent::kNew, options->database, to);
  commit_in(ctx, options->database, to, KeyEvent::kCopyTo);
  lock.unlock();
  ctx.environment.reclaimer.drop(std::move(replaced));
  ctx.reply.integer(1);
}

/* MOVE key db */
void move(Context& ctx) {
  if (has_one_database(ctx)) return ctx.reply.error(not_in_cluster("MOVE"));
  const auto target = parse_database_index(ctx.args[2], ctx.keyspace().database_count());
  if (!target) return ctx.reply.error(target.error().message);
  if (*target == ctx.database()) return ctx.reply.error(kSameObject);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  if (ctx.find(key) == nullptr) return ctx.reply.integer(0);
  if (ctx.keyspace().find_for_write(*target, key, ctx.expiry_now_ms) != nullptr) {
    return ctx.reply.integer(0);
  }
  // The name has the same hash and stripe in both databases, so the entry can move between the
  // tables.
  ctx.keyspace().put(*target, key, ctx.keyspace().erase(ctx.database(), key));
  ctx.notify(KeyEvent::kNew, *target, key);
  ctx.commit(key, KeyEvent::kMoveFrom);
  commit_in(ctx, *target, key, KeyEvent::kMoveTo);
  ctx.reply.integer(1);
}

constexpr std::array<KeyRange, 2> from_and_to(uint16_t from_use, uint16_t to_use) {
  return {{{1, 1, 1, from_use}, {2, 2, 1, to_use}}};
}

const Command kKeyRows[] = {
    {.name = "copy",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = from_and_to(kKeyRo | kKeyAccess, kKeyOw | kKeyUpdate),
     .since = "6.2.0",
     .summary = "Copies a value to another key",
     .complexity = "O(N) where N is the size of the value",
     .syntax = "source destination [DB destination-db:integer] [REPLACE]",
     .handler = copy},
    {.name = "del",
     .arity = -2,
     .flags = kWrite,
     .keys = keys_to_end(1, 1, kKeyRm | kKeyDelete),
     .summary = "Deletes keys and counts those that existed",
     .complexity = "O(N) where N is the number of keys; big values are freed by another thread",
     .syntax = "key ...",
     .tips = "request_policy:multi_shard response_policy:agg_sum",
     .handler = remove},
    {.name = "exists",
     .arity = -2,
     .flags = kReadOnly | kFast,
     .keys = keys_to_end(1, 1, kKeyRo),
     .summary = "Counts how many of the keys exist",
     .complexity = "O(N) where N is the number of keys to check",
     .syntax = "key ...",
     .tips = "request_policy:multi_shard response_policy:agg_sum",
     .handler = exists},
    {.name = "move",
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyUpdate),
     .summary = "Moves a key to another database",
     .syntax = "key db:integer",
     .handler = move},
    {.name = "rename",
     .arity = 3,
     .flags = kWrite,
     .keys = from_and_to(kKeyRw | kKeyAccess | kKeyDelete, kKeyOw | kKeyUpdate),
     .summary = "Renames a key; an existing key of the new name is replaced",
     .syntax = "key newkey",
     .handler = calls<rename_key, IfTaken::kReplace>},
    {.name = "renamenx",
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = from_and_to(kKeyRw | kKeyAccess | kKeyDelete, kKeyOw | kKeyInsert),
     .summary = "Renames a key unless the new name exists",
     .syntax = "key newkey",
     .handler = calls<rename_key, IfTaken::kRefuse>},
    {.name = "touch",
     .arity = -2,
     .flags = kReadOnly | kFast,
     .keys = keys_to_end(1, 1, kKeyRo),
     .since = "3.2.1",
     .summary = "Marks keys as just used and counts them",
     .complexity = "O(N) where N is the number of keys that will be touched",
     .syntax = "key ...",
     .tips = "request_policy:multi_shard response_policy:agg_sum",
     .handler = touch},
    {.name = "type",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .keys = one_key(kKeyRo),
     .summary = "Returns the type of a key's value",
     .syntax = "key",
     .handler = type},
    {.name = "unlink",
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = keys_to_end(1, 1, kKeyRm | kKeyDelete),
     .since = "4.0.0",
     .summary = "Deletes keys and frees their memory in the background",
     .complexity = "O(N) where N is the number of keys; big values are freed by another thread",
     .syntax = "key ...",
     .tips = "request_policy:multi_shard response_policy:agg_sum",
     .handler = remove},
};

}  // namespace

const CommandFamily kKeyCommands{
    {.categories = kKeyspace, .group = "generic", .since = "1.0.0", .complexity = "O(1)"},
    kKeyRows};

}  // namespace server
