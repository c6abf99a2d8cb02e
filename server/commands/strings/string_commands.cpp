// SPDX-License-Identifier: MIT
//
// GET, SET and similar commands read and write whole string values, with or without an expiry.
#include <optional>
#include <string>

#include "core/keyspace/reclaimer.h"
#include "server/commands/families.h"
#include "server/commands/strings/new_value.h"
#include "server/commands/strings/ttl_option.h"
#include "server/commands/strings/value_condition.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using protocol::ArgumentCursor;

enum class Condition : uint8_t { kAlways, kIfMissing, kIfExists };

struct SetOptions {
  Condition condition = Condition::kAlways;
  ValueCondition value{};
  bool get = false;  // true if the reply is the old value
  TtlOption ttl;
};

void answer_value(Context& ctx, const Entry* entry) {
  core::keyspace::IntegerText scratch;
  entry == nullptr ? ctx.reply.null() : ctx.reply.bulk(entry->text(scratch));
}

/* GET key */
void get(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  if (const auto entry = ctx.find_string(key)) answer_value(ctx, *entry);
}

// Looks up the key before SET writes it. With GET or a condition on the old value, replies with
// WRONGTYPE if the key holds no string.
Found<Entry> find_to_set(Context& ctx, const KeyRef& key, const SetOptions& options) {
  if (options.get) return ctx.find_string_to_read(key);
  return options.value.is_set() ? ctx.find_string(key) : ctx.find(key);
}

core::Result<bool> allows_set(const SetOptions& options, const Entry* old) {
  if (options.condition == Condition::kIfMissing) return old == nullptr;
  if (options.condition == Condition::kIfExists) return old != nullptr;
  if (!options.value.is_set()) return true;
  return old == nullptr ? options.value.holds_for_missing_key() : options.value.holds_for(*old);
}

// Sets the key in argument 1. Returns true if the value was stored, false if the condition was not
// met, and nullopt after an error reply. With options.get, replies with the old value.
std::optional<bool> set_key(Context& ctx, const SetOptions& options, std::string_view text) {
  int64_t expires_at_ms = core::keyspace::kNoExpiry;
  if (options.ttl.has_amount()) {
    const auto at_ms = expiry_ms(ctx, options.ttl);
    if (!at_ms) return ctx.reply.error(at_ms.error().message), std::nullopt;
    expires_at_ms = *at_ms;
  }
  const KeyRef key = ctx.key(1);
  // `value` may own the bytes of `text`. It is declared before the lock, so that `text` stays
  // readable until the lock is released, even if the value is not stored.
  NewValue value(text);
  if (!value.take_or_prepare(ctx))
    return ctx.reply.error(ctx.admission().memory_refusal()), std::nullopt;

  const auto lock = ctx.lock(key);
  const auto found = find_to_set(ctx, key, options);
  if (!found) return std::nullopt;
  Entry* const old = *found;
  const auto is_allowed = allows_set(options, old);
  if (!is_allowed) return ctx.reply.error(is_allowed.error().message), std::nullopt;
  const size_t mark = ctx.reply.buffer().size();
  if (options.get) answer_value(ctx, old);
  if (!*is_allowed) return false;
  Entry* const entry = value.store(ctx, key, old);
  if (entry == nullptr) {
    ctx.reply.buffer().truncate(mark);
    return ctx.reply.error(ctx.admission().memory_refusal()), std::nullopt;
  }
  if (options.ttl.kind != Ttl::kKeep && entry->expires_at_ms() != expires_at_ms) {
    // An expiry in the past is stored like any other. The next lookup deletes the key.
    ctx.keyspace().set_expiry(ctx.database(), key, *entry, expires_at_ms);
  }
  commit_set(ctx, key, text, options.ttl, expires_at_ms);
  return true;
}

core::Result<SetOptions> parse_set(Arguments arguments) {
  SetOptions options;
  ArgumentCursor cursor(arguments);
  const auto require = [&](Condition condition) {
    const bool is_other = options.condition != Condition::kAlways && options.condition != condition;
    if (is_other || options.value.is_set()) cursor.fail(kSyntaxError);
    options.condition = condition;
  };
  // A condition such as IFEQ may occur several times. Then only the last operand counts.
  const auto compare = [&](ValueCondition::Kind kind) {
    const bool is_other = options.value.is_set() && options.value.kind != kind;
    if (is_other || options.condition != Condition::kAlways) cursor.fail(kSyntaxError);
    cursor.next();
    options.value = {kind, cursor.next()};
  };
  while (!cursor.done()) {
    if (cursor.eat_keyword("NX")) {
      require(Condition::kIfMissing);
    } else if (cursor.eat_keyword("XX")) {
      require(Condition::kIfExists);
    } else if (cursor.eat_keyword("GET")) {
      options.get = true;
    } else if (cursor.eat_keyword("KEEPTTL")) {
      if (!choose_ttl(options.ttl, Ttl::kKeep)) cursor.fail(kSyntaxError);
    } else if (const auto kind = condition_kind(cursor.peek());
               kind != ValueCondition::Kind::kNone) {
      compare(kind);
    } else if (!eat_ttl(cursor, options.ttl)) {
      cursor.fail(kSyntaxError);
    }
  }
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  return options;
}

/* SET key value [NX | XX | IFEQ v | IFNE v | IFDEQ d | IFDNE d] [GET] [EX s | PX ms | EXAT unix-s |
 * PXAT unix-ms | KEEPTTL] */
void set(Context& ctx) {
  SetOptions options;
  if (ctx.args.size() > 3) {
    auto parsed = parse_set(ctx.args.subspan(3));
    if (!parsed) return ctx.reply.error(parsed.error().message);
    options = *parsed;
  }
  const auto stored = set_key(ctx, options, ctx.args[2]);
  if (!stored || options.get) return;
  *stored ? ctx.reply.ok() : ctx.reply.null();
}

// SET reads the old value only if it has GET or a condition.
uint16_t set_key_use(Arguments args) {
  for (size_t i = 3; i < args.size(); ++i) {
    const bool is_read = protocol::equals_ignore_case(args[i], "GET") ||
                         condition_kind(args[i]) != ValueCondition::Kind::kNone;
    if (is_read) return kKeyRw | kKeyAccess | kKeyUpdate;
  }
  return kKeyOw | kKeyUpdate;
}

/* SETNX key value */
void setnx(Context& ctx) {
  const auto stored = set_key(ctx, {.condition = Condition::kIfMissing, .ttl = {}}, ctx.args[2]);
  if (stored) ctx.reply.integer(*stored ? 1 : 0);
}

/* SETEX key seconds value | PSETEX key milliseconds value */
void set_expiring(Context& ctx, Ttl unit) {
  if (set_key(ctx, {.ttl = {unit, ctx.args[2]}}, ctx.args[3])) ctx.reply.ok();
}

/* GETSET key value */
void getset(Context& ctx) {
  set_key(ctx, {.get = true, .ttl = {}}, ctx.args[2]);
}

void remove(Context& ctx, const KeyRef& key) {
  ctx.environment.reclaimer.drop(ctx.keyspace().erase(ctx.database(), key));
  ctx.commit(key, KeyEvent::kDel, {"DEL", key.name});
}

/* GETDEL key */
void getdel(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto entry = ctx.find_string_to_read(key);
  if (!entry) return;
  answer_value(ctx, *entry);
  if (*entry != nullptr) remove(ctx, key);
}

// Changes the expiry of the key whose value GETEX returned.
void change_expiry(Context& ctx, const KeyRef& key, const TtlOption& option, int64_t at_ms) {
  Entry& entry = *ctx.keyspace().find_any(ctx.database(), key);
  const bool absolute = option.kind == Ttl::kAtSeconds || option.kind == Ttl::kAtMilliseconds;
  if (absolute && at_ms <= ctx.now_ms) return remove(ctx, key);
  if (option.kind == Ttl::kPersist && !entry.has_expiry()) return;
  ctx.keyspace().set_expiry(ctx.database(), key, entry, at_ms);
  if (option.kind == Ttl::kPersist) {
    return ctx.commit(key, KeyEvent::kPersist, {"PERSIST", key.name});
  }
  ctx.commit(key, KeyEvent::kExpire, {"PEXPIREAT", key.name, Decimal(at_ms).text()});
}

/* GETEX key [EX s | PX ms | EXAT unix-s | PXAT unix-ms | PERSIST] */
void getex(Context& ctx) {
  TtlOption option;
  ArgumentCursor cursor(ctx.args.subspan(2));
  while (!cursor.done()) {
    const bool fits =
        cursor.eat_keyword("PERSIST") ? choose_ttl(option, Ttl::kPersist) : eat_ttl(cursor, option);
    if (!fits) cursor.fail(kSyntaxError);
  }
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  core::Result<int64_t> at_ms = core::keyspace::kNoExpiry;
  if (option.has_amount()) at_ms = expiry_ms(ctx, option);

  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto entry = ctx.find_string_to_read(key);
  if (!entry) return;
  if (*entry == nullptr) return ctx.reply.null();
  // As in Redis, the reply for a missing key takes precedence over the error of an invalid expiry.
  if (!at_ms) return ctx.reply.error(at_ms.error().message);
  answer_value(ctx, *entry);
  if (option.kind != Ttl::kNone) change_expiry(ctx, key, option, *at_ms);
}

const Command kStringRows[] = {
    {.name = "get",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .keys = one_key(kKeyRo | kKeyAccess),
     .summary = "Returns the string at a key",
     .syntax = "key",
     .handler = get},
    {.name = "set",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyUpdate | kKeyVariable,
                     "Reads the old value only with GET or a condition on it"),
     .summary = "Stores a string, on request with a condition or an expiry",
     .syntax = "key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | "
               "IFDNE ifdne-digest] [GET] [EX seconds | PX milliseconds | "
               "EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
               "KEEPTTL]",
     .handler = set,
     .key_use = set_key_use,
     .journalled = Journalled::kEffects},
    {.name = "getset",
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyUpdate),
     .summary = "Stores a string and returns the one before it",
     .syntax = "key value",
     .handler = getset,
     .journalled = Journalled::kEffects},
    {.name = "getdel",
     .arity = 2,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyDelete),
     .since = "6.2.0",
     .summary = "Returns the string at a key and deletes the key",
     .syntax = "key",
     .handler = getdel,
     .journalled = Journalled::kEffects},
    {.name = "getex",
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyUpdate, "Changes the expiry, not the value"),
     .since = "6.2.0",
     .summary = "Returns the string at a key and changes when it expires",
     .syntax = "key [EX seconds | PX milliseconds | "
               "EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
               "PERSIST]",
     .handler = getex,
     .journalled = Journalled::kEffects},
    {.name = "setnx",
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = one_key(kKeyOw | kKeyInsert),
     .summary = "Stores a string unless the key exists",
     .syntax = "key value",
     .handler = setnx,
     .journalled = Journalled::kEffects},
    {.name = "setex",
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyOw | kKeyUpdate),
     .since = "2.0.0",
     .summary = "Stores a string that expires after some seconds",
     .syntax = "key seconds value",
     .handler = calls<set_expiring, Ttl::kSeconds>,
     .journalled = Journalled::kEffects},
    {.name = "psetex",
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyOw | kKeyUpdate),
     .since = "2.6.0",
     .summary = "Stores a string that expires after some milliseconds",
     .syntax = "key milliseconds value",
     .handler = calls<set_expiring, Ttl::kMilliseconds>,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kStringCommands{
    {.categories = kString, .group = "string", .since = "1.0.0", .complexity = "O(1)"},
    kStringRows};

}  // namespace server
