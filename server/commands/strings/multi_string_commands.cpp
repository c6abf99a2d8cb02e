// SPDX-License-Identifier: MIT
//
// MGET, MSET, MSETNX: many strings at once, under the locks of all their keys.
#include <optional>
#include <utility>
#include <vector>

#include "server/commands/strings/new_value.h"
#include "server/dispatch/context.h"
#include "server/dispatch/families.h"

namespace server {
namespace {

/* MGET key [key ...] */
void mget(Context& ctx) {
  const auto lock = ctx.lock_keys();
  ctx.reply.array(ctx.args.size() - 1);
  core::keyspace::IntegerText scratch;
  for (size_t i = 1; i < ctx.args.size(); ++i) {
    // Other types are no error here: they have no string, as if they were missing.
    const Entry* const entry = ctx.find(ctx.key(i));
    const bool has_string = entry != nullptr && entry->is_string();
    has_string ? ctx.reply.bulk(entry->text(scratch)) : ctx.reply.null();
  }
}

// Answers an error when the arguments after the name are no pairs.
bool are_pairs(Context& ctx) {
  if (ctx.args.size() % 2 == 1) return true;
  ctx.reply.error("ERR wrong number of arguments for '" + ctx.command->full_name + "' command");
  return false;
}

// The values of all pairs, checked against the memory left; nothing when that does not suffice.
std::optional<std::vector<NewValue>> prepare_values(const Context& ctx) {
  uint64_t total_bytes = 0;
  for (size_t i = 2; i < ctx.args.size(); i += 2) total_bytes += ctx.args[i].size();
  if (!ctx.admission().memory_suffices(total_bytes)) return std::nullopt;
  std::vector<NewValue> values;
  values.reserve(ctx.args.size() / 2);
  for (size_t i = 2; i < ctx.args.size(); i += 2) {
    auto value = NewValue::prepare(ctx, ctx.args[i]);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

// False when memory ran out on the way, in which case the earlier keys are set.
bool store_pairs(Context& ctx, std::vector<NewValue>& values) {
  for (size_t i = 1; i < ctx.args.size(); i += 2) {
    const KeyRef key = ctx.key(i);
    Entry* const entry = values[i / 2].store(ctx, key, ctx.find(key));
    if (entry == nullptr) {
      if (i > 1) ctx.journal(ctx.args.first(i));
      return false;
    }
    ctx.keyspace().clear_expiry(ctx.database(), key, *entry);
    ctx.changed(key, KeyEvent::kSet);
  }
  ctx.journal(ctx.args);
  return true;
}

/* MSET key value [key value ...] */
void mset(Context& ctx) {
  if (!are_pairs(ctx)) return;
  auto values = prepare_values(ctx);
  if (!values) return ctx.reply.error(kOutOfMemory);
  const auto lock = ctx.lock_keys();
  if (!store_pairs(ctx, *values)) return ctx.reply.error(kOutOfMemory);
  ctx.reply.ok();
}

/* MSETNX key value [key value ...] */
void msetnx(Context& ctx) {
  if (!are_pairs(ctx)) return;
  auto values = prepare_values(ctx);
  if (!values) return ctx.reply.error(kOutOfMemory);
  const auto lock = ctx.lock_keys();
  for (size_t i = 1; i < ctx.args.size(); i += 2) {
    if (ctx.find(ctx.key(i)) != nullptr) return ctx.reply.integer(0);
  }
  if (!store_pairs(ctx, *values)) return ctx.reply.error(kOutOfMemory);
  ctx.reply.integer(1);
}

const Command kMultiStringRows[] = {
    {.name = "mget",
     .arity = -2,
     .flags = kReadOnly | kFast,
     .keys = keys_to_end(1, 1, kKeyRo | kKeyAccess),
     .categories = kString,
     .group = "string",
     .since = "1.0.0",
     .summary = "Returns the strings at several keys",
     .complexity = "O(N) where N is the number of keys to retrieve",
     .syntax = "key ...",
     .tips = "request_policy:multi_shard",
     .handler = mget},
    {.name = "mset",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = keys_to_end(1, 2, kKeyOw | kKeyUpdate),
     .categories = kString,
     .group = "string",
     .since = "1.0.1",
     .summary = "Stores several strings at once",
     .complexity = "O(N) where N is the number of keys to set",
     .syntax = "(key value) ...",
     .tips = "request_policy:multi_shard response_policy:all_succeeded",
     .handler = mset,
     .journalled = Journalled::kEffects},
    {.name = "msetnx",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = keys_to_end(1, 2, kKeyOw | kKeyInsert),
     .categories = kString,
     .group = "string",
     .since = "1.0.1",
     .summary = "Stores several strings unless one of the keys exists",
     .complexity = "O(N) where N is the number of keys to set",
     .syntax = "(key value) ...",
     .tips = "request_policy:multi_shard response_policy:agg_min",
     .handler = msetnx,
     .journalled = Journalled::kEffects},
};

}  // namespace

std::span<const Command> multi_string_commands() {
  return kMultiStringRows;
}

}  // namespace server
