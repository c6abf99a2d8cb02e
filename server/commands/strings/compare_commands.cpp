// SPDX-License-Identifier: MIT
//
// DELEX, DELIFEQ and DIGEST: delete a key if its value is the expected one, and identify a value
// without sending it.
#include <utility>

#include "core/keyspace/reclaimer.h"
#include "core/keyspace/value_digest.h"
#include "protocol/arguments.h"
#include "server/commands/families.h"
#include "server/commands/strings/value_condition.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

constexpr std::string_view kWrongCondition =
    "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE";
constexpr std::string_view kNotAString =
    "ERR Key should be of string type if conditions are specified";

// Returns whether to delete the key; nullopt after an error reply.
std::optional<bool> shall_go(Context& ctx, const Entry* entry, const ValueCondition& condition) {
  if (entry == nullptr) return false;
  if (ctx.args.size() == 2) return true;
  if (!entry->is_string()) return ctx.reply.error(kNotAString), std::nullopt;
  if (!condition.is_set()) return ctx.reply.error(kWrongCondition), std::nullopt;
  const auto holds = condition.holds_for(*entry);
  if (!holds) return ctx.reply.error(holds.error().message), std::nullopt;
  return *holds;
}

// Deletes the key if `goes` is true, and keeps it otherwise. Replies with the number of deleted
// keys, 1 or 0. Unlocks `lock`.
void delete_if(Context& ctx, const KeyRef& key, StripeLock& lock, bool goes) {
  EntryPtr gone;
  if (goes) {
    gone = ctx.keyspace().erase(ctx.database(), key);
    ctx.commit(key, KeyEvent::kDel, {"DEL", key.name});
  }
  lock.unlock();
  if (gone != nullptr) ctx.environment.reclaimer.drop(std::move(gone));
  ctx.reply.integer(goes ? 1 : 0);
}

/* DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] */
void delex(Context& ctx) {
  ValueCondition condition;
  if (ctx.args.size() == 4) {
    condition = {condition_kind(ctx.args[2]), ctx.args[3]};
  } else if (ctx.args.size() != 2) {
    return ctx.reply.error(protocol::wrong_arity("delex"));
  }
  const KeyRef key = ctx.key(1);
  StripeLock lock = ctx.lock(key);
  const auto goes = shall_go(ctx, ctx.find(key), condition);
  if (goes) delete_if(ctx, key, lock, *goes);
}

/* DELIFEQ key value */
void delifeq(Context& ctx) {
  const KeyRef key = ctx.key(1);
  StripeLock lock = ctx.lock(key);
  const auto entry = ctx.find_string(key);
  if (!entry) return;
  const ValueCondition condition{ValueCondition::Kind::kEqual, ctx.args[2]};
  delete_if(ctx, key, lock, *entry != nullptr && *condition.holds_for(**entry));
}

// Without a condition the command does not read the value.
uint16_t delex_key_use(Arguments args) {
  return args.size() == 2 ? kKeyRm | kKeyDelete : kKeyRw | kKeyAccess | kKeyDelete;
}

/* DIGEST key */
void digest(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto entry = ctx.find_string(key);
  if (!entry) return;
  if (*entry == nullptr) return ctx.reply.null();
  core::keyspace::IntegerText scratch;
  const uint64_t value = core::keyspace::value_digest((*entry)->text(scratch));
  ctx.reply.bulk(core::keyspace::digest_text(value));
}

const Command kCompareRows[] = {
    {.name = "delex",
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyDelete | kKeyVariable,
                     "Reads the value only with a condition"),
     .summary = "Deletes a key, on request if it holds a certain string",
     .complexity = "O(1) without a digest, O(N) with one, where N is the length of the string",
     .syntax = "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
     .handler = delex,
     .key_use = delex_key_use,
     .journalled = Journalled::kEffects},
    {.name = "delifeq",
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyDelete),
     .since = "9.0.0",
     .summary = "Deletes a key if it holds a certain string",
     .complexity = "O(1)",
     .syntax = "key value",
     .handler = delifeq,
     .journalled = Journalled::kEffects},
    {.name = "digest",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .keys = one_key(kKeyRo | kKeyAccess),
     .summary = "Returns the XXH3 hash of the string at a key",
     .complexity = "O(N) where N is the length of the string",
     .syntax = "key",
     .handler = digest},
};

}  // namespace

const CommandFamily kCompareCommands{{.categories = kString, .group = "string", .since = "8.4.0"},
                                     kCompareRows};

}  // namespace server
