// SPDX-License-Identifier: MIT
//
// EXPIRE and similar commands set a key's expiry, TTL and similar commands return it, and PERSIST
// removes it.
#include <fmt/format.h>

#include <optional>

#include "core/keyspace/reclaimer.h"
#include "server/commands/families.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

enum class Unit : uint8_t { kSeconds, kMilliseconds };
enum class Base : uint8_t { kNow, kEpoch };

// The conditions NX, XX, GT and LT on a key's present expiry.
struct Conditions {
  bool only_without = false;  // with NX, the key must have no expiry
  bool only_with = false;     // with XX, the key must have an expiry
  bool only_later = false;    // with GT, the new expiry must be later than the present one
  bool only_earlier = false;  // with LT, the new expiry must be earlier than the present one

  // A key without an expiry counts as expiring last.
  bool allow(const Entry& entry, int64_t expires_at_ms) const {
    const bool has = entry.has_expiry();
    if (only_without && has) return false;
    if (only_with && !has) return false;
    if (only_later && (!has || expires_at_ms <= entry.expires_at_ms())) return false;
    return !(only_earlier && has && expires_at_ms >= entry.expires_at_ms());
  }
};

core::Result<Conditions> parse_conditions(Arguments args) {
  Conditions conditions;
  for (const std::string_view option : args) {
    if (protocol::equals_ignore_case(option, "NX")) {
      conditions.only_without = true;
    } else if (protocol::equals_ignore_case(option, "XX")) {
      conditions.only_with = true;
    } else if (protocol::equals_ignore_case(option, "GT")) {
      conditions.only_later = true;
    } else if (protocol::equals_ignore_case(option, "LT")) {
      conditions.only_earlier = true;
    } else {
      // As in Redis, the argument is quoted up to its first zero byte.
      return core::Error{
          fmt::format("ERR Unsupported option {}", option.substr(0, option.find('\0')))};
    }
  }
  if (conditions.only_without &&
      (conditions.only_with || conditions.only_later || conditions.only_earlier)) {
    return core::Error{"ERR NX and XX, GT or LT options at the same time are not compatible"};
  }
  if (conditions.only_later && conditions.only_earlier) {
    return core::Error{"ERR GT and LT options at the same time are not compatible"};
  }
  return conditions;
}

// Returns the expiry in milliseconds since 1970; nullopt on overflow. Times in the past are
// allowed.
std::optional<int64_t> absolute_ms(int64_t time, Unit unit, int64_t base_ms) {
  int64_t result = 0;
  if (__builtin_mul_overflow(time, unit == Unit::kSeconds ? 1000 : 1, &result) ||
      __builtin_add_overflow(result, base_ms, &result)) {
    return std::nullopt;
  }
  return result;
}

// Sets the key's expiry. If the expiry has already passed, deletes the key at once and returns the
// key's entry, to be freed without the lock. REQUIRES: the key's lock.
EntryPtr apply_expiry(Context& ctx, const KeyRef& key, int64_t expires_at_ms) {
  EntryPtr removed;
  const bool is_over = expires_at_ms <= ctx.expiry_now_ms;
  // If the expiry is the present millisecond, lookups do not treat the entry as expired yet. So the
  // entry is deleted here.
  if (is_over) {
    removed = ctx.keyspace().erase(ctx.database(), key);
    ctx.commit(key, KeyEvent::kDel, {"DEL", key.name});
  } else {
    Entry* entry = ctx.keyspace().find_any(ctx.database(), key);
    ctx.keyspace().set_expiry(ctx.database(), key, *entry, expires_at_ms);
    ctx.commit(key, KeyEvent::kExpire, {"PEXPIREAT", key.name, Decimal(expires_at_ms).text()});
  }
  return removed;
}

/* EXPIRE key seconds | PEXPIRE key milliseconds | EXPIREAT key unix-time-seconds |
   PEXPIREAT key unix-time-milliseconds, each with [NX | XX | GT | LT] */
// As in Redis, errors in the options take precedence over errors in the time.
void set_expiry(Context& ctx, Unit unit, Base base) {
  const auto conditions = parse_conditions(ctx.args.subspan(3));
  if (!conditions) return ctx.reply.error(conditions.error().message);
  const auto time = core::parse_int64(ctx.args[2]);
  if (!time) return ctx.reply.error(kNotAnInteger);
  const auto expires_at_ms = absolute_ms(*time, unit, base == Base::kNow ? ctx.now_ms : 0);
  if (!expires_at_ms) {
    return ctx.reply.error(protocol::invalid_expiry(ctx.command->full_name));
  }
  const KeyRef key = ctx.key(1);
  StripeLock lock = ctx.lock(key);
  const Entry* entry = ctx.find(key);
  if (entry == nullptr || !conditions->allow(*entry, *expires_at_ms)) return ctx.reply.integer(0);
  EntryPtr removed = apply_expiry(ctx, key, *expires_at_ms);
  lock.unlock();
  ctx.environment.reclaimer.drop(std::move(removed));
  ctx.reply.integer(1);
}

/* TTL key | PTTL key | EXPIRETIME key | PEXPIRETIME key */
// Replies -2 if the key is missing and -1 if it has no expiry.
void reply_expiry(Context& ctx, Unit unit, Base base) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const Entry* entry = ctx.peek(key);
  if (entry == nullptr) return ctx.reply.integer(-2);
  if (!entry->has_expiry()) return ctx.reply.integer(-1);
  const int64_t time_ms = entry->expires_at_ms() - (base == Base::kNow ? ctx.now_ms : 0);
  // Rounds after the division, because adding 500 before the division would overflow for the latest
  // possible expiry.
  const int64_t time_s = time_ms / 1000 + (time_ms % 1000 >= 500 ? 1 : 0);
  ctx.reply.integer(unit == Unit::kSeconds ? time_s : time_ms);
}

/* PERSIST key */
void persist(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  Entry* entry = ctx.find(key);
  if (entry == nullptr || !entry->has_expiry()) return ctx.reply.integer(0);
  ctx.keyspace().set_expiry(ctx.database(), key, *entry, core::keyspace::kNoExpiry);
  ctx.commit(key, KeyEvent::kPersist);
  ctx.reply.integer(1);
}

constexpr uint32_t kSets = kWrite | kFast;
constexpr uint32_t kReadsExpiry = kReadOnly | kFast;
constexpr auto kSetKey = one_key(kKeyRw | kKeyUpdate);
constexpr auto kExpiryKey = one_key(kKeyRo | kKeyAccess);

const Command kExpiryRows[] = {
    {.name = "expire",
     .arity = -3,
     .since = "1.0.0",
     .summary = "Sets a key's expiry in seconds from now",
     .syntax = "key seconds [NX | XX | GT | LT]",
     .handler = calls<set_expiry, Unit::kSeconds, Base::kNow>,
     .journalled = Journalled::kEffects},
    {.name = "expireat",
     .arity = -3,
     .since = "1.2.0",
     .summary = "Sets a key's expiry to a time in seconds",
     .syntax = "key unix-time-seconds [NX | XX | GT | LT]",
     .handler = calls<set_expiry, Unit::kSeconds, Base::kEpoch>,
     .journalled = Journalled::kEffects},
    {.name = "expiretime",
     .arity = 2,
     .flags = kReadsExpiry,
     .keys = kExpiryKey,
     .since = "7.0.0",
     .summary = "Returns the time in seconds at which a key expires",
     .syntax = "key",
     .handler = calls<reply_expiry, Unit::kSeconds, Base::kEpoch>},
    {.name = "persist",
     .arity = 2,
     .since = "2.2.0",
     .summary = "Removes a key's expiry",
     .syntax = "key",
     .handler = persist},
    {.name = "pexpire",
     .arity = -3,
     .since = "2.6.0",
     .summary = "Sets a key's expiry in milliseconds from now",
     .syntax = "key milliseconds [NX | XX | GT | LT]",
     .handler = calls<set_expiry, Unit::kMilliseconds, Base::kNow>,
     .journalled = Journalled::kEffects},
    {.name = "pexpireat",
     .arity = -3,
     .since = "2.6.0",
     .summary = "Sets a key's expiry to a time in milliseconds",
     .syntax = "key unix-time-milliseconds [NX | XX | GT | LT]",
     .handler = calls<set_expiry, Unit::kMilliseconds, Base::kEpoch>,
     .journalled = Journalled::kEffects},
    {.name = "pexpiretime",
     .arity = 2,
     .flags = kReadsExpiry,
     .keys = kExpiryKey,
     .since = "7.0.0",
     .summary = "Returns the time in milliseconds at which a key expires",
     .syntax = "key",
     .handler = calls<reply_expiry, Unit::kMilliseconds, Base::kEpoch>},
    {.name = "pttl",
     .arity = 2,
     .flags = kReadsExpiry,
     .keys = kExpiryKey,
     .since = "2.6.0",
     .summary = "Returns the milliseconds until a key expires",
     .syntax = "key",
     .tips = kVaryingOutput,
     .handler = calls<reply_expiry, Unit::kMilliseconds, Base::kNow>},
    {.name = "ttl",
     .arity = 2,
     .flags = kReadsExpiry,
     .keys = kExpiryKey,
     .since = "1.0.0",
     .summary = "Returns the seconds until a key expires",
     .syntax = "key",
     .tips = kVaryingOutput,
     .handler = calls<reply_expiry, Unit::kSeconds, Base::kNow>},
};

}  // namespace

const CommandFamily kExpiryCommands{{.flags = kSets,
                                     .keys = kSetKey,
                                     .categories = kKeyspace,
                                     .group = "generic",
                                     .complexity = "O(1)"},
                                    kExpiryRows};

}  // namespace server
