// SPDX-License-Identifier: MIT
//
// The commands on strings that are numbers: INCR, DECR, INCRBY, DECRBY and INCRBYFLOAT.
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "core/keyspace/reclaimer.h"
#include "core/number.h"
#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::keyspace::IntegerText;
using core::keyspace::ValueKind;

// Returns the entry's number. A missing entry counts as 0.
std::optional<int64_t> integer_of(const Entry* entry) {
  if (entry == nullptr) return 0;
  if (entry->kind() == ValueKind::kInteger) return entry->integer();
  IntegerText scratch;
  return core::parse_int64(entry->text(scratch));
}

std::optional<long double> long_double_of(const Entry* entry) {
  if (entry == nullptr) return 0;
  IntegerText scratch;
  return core::parse_long_double(entry->text(scratch));
}

/* INCR key | DECR key */
void add_to_counter(Context& ctx, int64_t delta) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string(key);
  if (!found) return;
  const auto old = integer_of(*found);
  if (!old) return ctx.reply.error(kNotAnInteger);
  int64_t sum = 0;
  if (__builtin_add_overflow(*old, delta, &sum)) {
    return ctx.reply.error("ERR increment or decrement would overflow");
  }
  Entry& entry = *found == nullptr ? ctx.insert(key) : **found;
  entry.set_integer(sum);
  ctx.commit(key, KeyEvent::kIncrBy);
  ctx.reply.integer(sum);
}

/* INCRBY key increment */
void incrby(Context& ctx) {
  const auto delta = core::parse_int64(ctx.args[2]);
  if (!delta) return ctx.reply.error(kNotAnInteger);
  add_to_counter(ctx, *delta);
}

/* DECRBY key decrement */
void decrby(Context& ctx) {
  const auto delta = core::parse_int64(ctx.args[2]);
  if (!delta) return ctx.reply.error(kNotAnInteger);
  // The smallest integer cannot be negated, so DECRBY rejects it.
  if (*delta == std::numeric_limits<int64_t>::min()) {
    return ctx.reply.error("ERR decrement would overflow");
  }
  add_to_counter(ctx, -*delta);
}

/* INCRBYFLOAT key increment */
void incrbyfloat(Context& ctx) {
  const auto delta = core::parse_long_double(ctx.args[2]);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string(key);
  if (!found) return;
  const auto old = long_double_of(*found);
  // An invalid increment is reported after the type check, because WRONGTYPE takes precedence.
  if (!old || !delta) return ctx.reply.error(kNotAFloat);
  const long double sum = *old + *delta;
  if (!std::isfinite(sum)) {
    return ctx.reply.error("ERR increment would produce NaN or Infinity");
  }
  const std::string text = core::format_long_double(sum);
  Entry& entry = *found == nullptr ? ctx.insert(key) : **found;
  if (!entry.set_plain_string(text)) {
    if (*found == nullptr)
      ctx.environment.reclaimer.drop(ctx.keyspace().erase(ctx.database(), key));
    return ctx.reply.error(ctx.admission().memory_refusal());
  }
  // The sum is journalled, because another processor may round differently.
  ctx.commit(key, KeyEvent::kIncrByFloat, {"SET", key.name, text, "KEEPTTL"});
  ctx.reply.bulk(text);
}

const Command kCounterRows[] = {
    {.name = "incr",
     .arity = 2,
     .summary = "Adds one to the integer at a key",
     .syntax = "key",
     .handler = calls<add_to_counter, 1>},
    {.name = "decr",
     .arity = 2,
     .summary = "Subtracts one from the integer at a key",
     .syntax = "key",
     .handler = calls<add_to_counter, -1>},
    {.name = "incrby",
     .arity = 3,
     .summary = "Adds a number to the integer at a key",
     .syntax = "key increment",
     .handler = incrby},
    {.name = "decrby",
     .arity = 3,
     .summary = "Subtracts a number from the integer at a key",
     .syntax = "key decrement",
     .handler = decrby},
    {.name = "incrbyfloat",
     .arity = 3,
     .since = "2.6.0",
     .summary = "Adds a number to the decimal fraction at a key",
     .syntax = "key increment:double",
     .handler = incrbyfloat,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kCounterCommands{{.flags = kWrite | kDenyOom | kFast,
                                      .keys = one_key(kKeyRw | kKeyAccess | kKeyUpdate),
                                      .categories = kString,
                                      .group = "string",
                                      .since = "1.0.0",
                                      .complexity = "O(1)"},
                                     kCounterRows};

}  // namespace server
