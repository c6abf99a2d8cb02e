// SPDX-License-Identifier: MIT
//
// MGET, MSET, MSETNX and MSETEX access many strings at once, under the locks of all their keys.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/commands/families.h"
#include "server/commands/strings/new_value.h"
#include "server/commands/strings/ttl_option.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

/* MGET key [key ...] */
void mget(Context& ctx) {
  const auto lock = ctx.lock_keys();
  ctx.reply.array(ctx.args.size() - 1);
  core::keyspace::IntegerText scratch;
  for (size_t i = 1; i < ctx.args.size(); ++i) {
    // As in Redis, keys of other types count as missing and are no error.
    const Entry* const entry = ctx.find(ctx.key(i));
    const bool has_string = entry != nullptr && entry->is_string();
    has_string ? ctx.reply.bulk(entry->text(scratch)) : ctx.reply.null();
  }
}

// Returns the values of all pairs; nullopt if memory is short.
std::optional<std::vector<NewValue>> prepare_values(const Context& ctx, Arguments pairs) {
  uint64_t total_bytes = 0;
  for (size_t i = 1; i < pairs.size(); i += 2) total_bytes += pairs[i].size();
  if (!ctx.admission().memory_suffices(total_bytes)) return std::nullopt;
  std::vector<NewValue> values;
  values.reserve(pairs.size() / 2);
  for (size_t i = 1; i < pairs.size(); i += 2) {
    if (!values.emplace_back(pairs[i]).prepare(ctx)) return std::nullopt;
  }
  return values;
}

// Sets the keys in order, and journals one command for all keys. Returns false if memory runs out.
// The keys set until then keep their new values.
bool store_pairs(Context& ctx, std::vector<NewValue>& values) {
  std::vector<std::string_view> scratch;
  const Arguments words = original_words(ctx, scratch);
  for (size_t i = 1; i < ctx.args.size(); i += 2) {
    const KeyRef key = ctx.key(i);
    Entry* const entry = values[i / 2].store(ctx, key, ctx.find(key));
    if (entry == nullptr) {
      if (i > 1) ctx.journal(words.first(i));
      return false;
    }
    ctx.keyspace().set_expiry(ctx.database(), key, *entry, core::keyspace::kNoExpiry);
    ctx.mark_changed(ctx.database(), key, KeyEvent::kSet);
  }
  ctx.journal(words);
  return true;
}

/* MSET key value [key value ...] | MSETNX key value [key value ...] */
void set_pairs(Context& ctx, bool only_if_missing) {
  if (ctx.args.size() % 2 == 0) {
    return ctx.reply.error(protocol::wrong_arity(ctx.command->full_name));
  }
  auto values = prepare_values(ctx, ctx.args.subspan(1));
  if (!values) return ctx.reply.error(ctx.admission().memory_refusal());
  const auto lock = ctx.lock_keys();
  for (size_t i = 1; only_if_missing && i < ctx.args.size(); i += 2) {
    if (ctx.find(ctx.key(i)) != nullptr) return ctx.reply.integer(0);
  }
  if (!store_pairs(ctx, *values)) return ctx.reply.error(ctx.admission().memory_refusal());
  only_if_missing ? ctx.reply.integer(1) : ctx.reply.ok();
}

struct MsetexRequest {
  Arguments pairs;
  bool if_missing = false;
  bool if_exists = false;
  TtlOption ttl;
  int64_t expires_at_ms = core::keyspace::kNoExpiry;
};

core::Result<MsetexRequest> parse_msetex(const Context& ctx) {
  MsetexRequest request;
  const auto count = core::parse_int64(ctx.args[1]);
  if (!count || *count < 1 || *count > std::numeric_limits<int32_t>::max()) {
    return core::Error{"ERR invalid numkeys value"};
  }
  const auto words = static_cast<size_t>(*count) * 2;
  if (words > ctx.args.size() - 2) return core::Error{"ERR wrong number of key-value pairs"};
  request.pairs = ctx.args.subspan(2, words);
  protocol::ArgumentCursor cursor(ctx.args.subspan(2 + words));
  while (!cursor.done()) {
    if (!request.if_exists && cursor.eat_keyword("NX")) {
      request.if_missing = true;
    } else if (!request.if_missing && cursor.eat_keyword("XX")) {
      request.if_exists = true;
    } else if (cursor.eat_keyword("KEEPTTL")) {
      if (!choose_ttl(request.ttl, Ttl::kKeep)) cursor.fail(kSyntaxError);
    } else if (!eat_ttl(cursor, request.ttl)) {
      cursor.fail(kSyntaxError);
    }
  }
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  if (request.ttl.has_amount()) {
    const auto at_ms = expiry_ms(ctx, request.ttl);
    if (!at_ms) return at_ms.error();
    request.expires_at_ms = *at_ms;
  }
  return request;
}

// Sets the keys in order, with their expiry. Returns false if memory runs out. The keys set until
// then keep their new values.
bool store_expiring(Context& ctx, const MsetexRequest& request, std::vector<NewValue>& values) {
  const persistence::Journal::Group group(ctx.environment.journal);
  for (size_t i = 0; i < request.pairs.size(); i += 2) {
    const KeyRef key = ctx.keyspace().ref(request.pairs[i]);
    Entry* const entry = values[i / 2].store(ctx, key, ctx.find(key));
    if (entry == nullptr) return false;
    if (request.ttl.kind != Ttl::kKeep) {
      ctx.keyspace().set_expiry(ctx.database(), key, *entry, request.expires_at_ms);
    }
    commit_set(ctx, key, request.pairs[i + 1], request.ttl, request.expires_at_ms);
  }
  return true;
}

/* MSETEX numkeys key value [key value ...] [NX | XX] [EX s | PX ms | EXAT unix-s | PXAT unix-ms |
   KEEPTTL] */
void msetex(Context& ctx) {
  const auto request = parse_msetex(ctx);
  if (!request) return ctx.reply.error(request.error().message);
  auto values = prepare_values(ctx, request->pairs);
  if (!values) return ctx.reply.error(ctx.admission().memory_refusal());
  const auto lock = ctx.lock_keys();
  for (size_t i = 0; i < request->pairs.size(); i += 2) {
    if (!request->if_missing && !request->if_exists) break;
    const bool exists = ctx.find(ctx.keyspace().ref(request->pairs[i])) != nullptr;
    if (exists != request->if_exists) return ctx.reply.integer(0);
  }
  if (!store_expiring(ctx, *request, *values))
    return ctx.reply.error(ctx.admission().memory_refusal());
  ctx.reply.integer(1);
}

const Command kMultiStringRows[] = {
    {.name = "mget",
     .arity = -2,
     .flags = kReadOnly | kFast,
     .keys = keys_to_end(1, 1, kKeyRo | kKeyAccess),
     .since = "1.0.0",
     .summary = "Returns the strings at several keys",
     .complexity = "O(N) where N is the number of keys to retrieve",
     .syntax = "key ...",
     .tips = "request_policy:multi_shard",
     .handler = mget},
    {.name = "mset",
     .arity = -3,
     .keys = keys_to_end(1, 2, kKeyOw | kKeyUpdate),
     .since = "1.0.1",
     .summary = "Stores several strings at once",
     .complexity = "O(N) where N is the number of keys to set",
     .syntax = "(key value) ...",
     .tips = "request_policy:multi_shard response_policy:all_succeeded",
     .handler = calls<set_pairs, false>,
     .journalled = Journalled::kEffects},
    {.name = "msetnx",
     .arity = -3,
     .keys = keys_to_end(1, 2, kKeyOw | kKeyInsert),
     .since = "1.0.1",
     .summary = "Stores several strings unless one of the keys exists",
     .complexity = "O(N) where N is the number of keys to set",
     .syntax = "(key value) ...",
     .tips = "request_policy:multi_shard response_policy:agg_min",
     .handler = calls<set_pairs, true>,
     .journalled = Journalled::kEffects},
    {.name = "msetex",
     .arity = -4,
     .keys = {{{.first = 2, .step = 2, .use = kKeyOw | kKeyUpdate, .count_at = 1}, {}}},
     .since = "8.4.0",
     .summary = "Stores several strings at once, on request with a condition or an expiry",
     .complexity = "O(N) where N is the number of keys to set",
     .syntax = "numkeys (key value) ... [NX | XX] [EX seconds | PX milliseconds | "
               "EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
     .tips = "request_policy:multi_shard response_policy:all_succeeded",
     .handler = msetex,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kMultiStringCommands{
    {.flags = kWrite | kDenyOom, .categories = kString, .group = "string"}, kMultiStringRows};

}  // namespace server
