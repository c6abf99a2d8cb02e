// SPDX-License-Identifier: MIT
//
// DUMP and RESTORE: one key's value in a format that other servers can read.
//
// RESTORE decodes without a lock, because decoding may take long. Whether the key exists is checked
// before decoding, as Redis does, and again afterwards.
#include <optional>
#include <string>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/keyspace/key_use.h"
#include "core/keyspace/reclaimer.h"
#include "persistence/rdb/dump_payload.h"
#include "server/commands/families.h"
#include "server/commands/keys/dump_value.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

constexpr std::string_view kInvalidTtl = "ERR Invalid TTL value, must be >= 0";
constexpr std::string_view kInvalidIdleTime = "ERR Invalid IDLETIME value, must be >= 0";
constexpr std::string_view kInvalidFrequency = "ERR Invalid FREQ value, must be >= 0 and <= 255";

uint64_t value_bytes(const Entry& entry) {
  return entry.is_filter() ? entry.filter().size_bytes() : entry.string_size();
}

/* DUMP key */
void dump(Context& ctx) {
  const KeyRef key = ctx.key(1);
  StripeLock lock = ctx.lock(key);
  const Entry* entry = ctx.find(key);
  if (entry == nullptr) return ctx.reply.null();
  const uint64_t size_bytes = value_bytes(*entry);
  if (!ctx.admission().allows_string(size_bytes)) return ctx.reply.error(kStringTooLong);
  // The payload, the compression buffer and the reply each need as much memory as the value.
  if (!ctx.admission().memory_suffices(3 * size_bytes))
    return ctx.reply.error(ctx.admission().memory_refusal());
  const std::string payload = dump_of(*entry);
  lock.unlock();
  ctx.reply.bulk(payload);
}

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
  std::optional<int64_t> idle_s;
  std::optional<uint8_t> frequency;
};

core::Result<RestoreOptions> parse_restore(Arguments args) {
  RestoreOptions options;
  protocol::ArgumentCursor cursor(args);
  while (!cursor.done()) {
    const bool has_value = cursor.remaining() >= 2;
    if (cursor.eat_keyword("REPLACE")) {
      options.replace = true;
    } else if (cursor.eat_keyword("ABSTTL")) {
      options.absolute = true;
    } else if (has_value && !options.frequency && cursor.eat_keyword("IDLETIME")) {
      options.idle_s = cursor.take_int64();
      if (*options.idle_s < 0) cursor.fail(kInvalidIdleTime);
    } else if (has_value && !options.idle_s && cursor.eat_keyword("FREQ")) {
      const int64_t frequency = cursor.take_int64();
      if (frequency < 0 || frequency > 255) cursor.fail(kInvalidFrequency);
      options.frequency = static_cast<uint8_t>(frequency);
    } else {
      cursor.fail(kSyntaxError);
    }
  }
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  return options;
}

// Returns the key's expiry, or kNoExpiry if the ttl is 0.
core::Result<int64_t> restored_expiry(const Context& ctx, bool absolute) {
  const auto ttl_ms = core::parse_int64(ctx.args[2]);
  if (!ttl_ms) return core::Error{std::string(kNotAnInteger)};
  if (*ttl_ms < 0) return core::Error{std::string(kInvalidTtl)};
  if (*ttl_ms == 0) return core::keyspace::kNoExpiry;
  if (absolute) return *ttl_ms;
  int64_t expires_at_ms = 0;
  if (__builtin_add_overflow(*ttl_ms, ctx.now_ms, &expires_at_ms)) {
    return core::Error{std::string(kInvalidTtl)};
  }
  return expires_at_ms;
}

// Returns whether RESTORE may replace an existing key. A RESTORE from the replication stream or the
// append log always may, because the same command has succeeded before.
bool may_replace(const Context& ctx, const RestoreOptions& options) {
  return options.replace || ctx.session.origin != CommandOrigin::kClient;
}

bool is_taken(Context& ctx, const KeyRef& key) {
  const auto lock = ctx.lock(key);
  return ctx.find(key) != nullptr;
}

// As in Redis, a key that is restored under an LFU policy counts as accessed now, and IDLETIME is
// ignored.
void set_use(const Context& ctx, const RestoreOptions& options, Entry& entry) {
  const auto idle_s =
      static_cast<uint64_t>(counts_uses(ctx.config()) ? 0 : options.idle_s.value_or(0));
  const uint8_t count = options.frequency.value_or(core::keyspace::kFirstUseCount);
  const auto use = core::keyspace::KeyUse::idle_for(idle_s, ctx.access_clock_s(), count);
  entry.set_use_bits(use.bits());
}

void commit_restore(Context& ctx, const KeyRef& key, const RestoreOptions& options,
                    int64_t expires_at_ms) {
  const int64_t at_ms = expires_at_ms == core::keyspace::kNoExpiry ? 0 : expires_at_ms;
  const Decimal at_text(at_ms);
  std::string scratch;
  const std::string_view payload = persistence::widely_readable_dump(ctx.args[3], scratch);
  std::vector<std::string_view> arguments = {"RESTORE", key.name, at_text.text(), payload};
  arguments.insert(arguments.end(), ctx.args.begin() + 4, ctx.args.end());
  if (!options.absolute) arguments.push_back("ABSTTL");
  ctx.commit(key, KeyEvent::kRestore, Arguments(arguments));
}

// Stores the restored entry. If its expiry has already passed, only deletes the key's old entry.
// Returns the old entry, which is null if the key did not exist. If the key exists and the command
// must not replace it, changes nothing and returns nullopt.
std::optional<EntryPtr> put_restored(Context& ctx, const KeyRef& key, EntryPtr& entry,
                                     const RestoreOptions& options) {
  const auto lock = ctx.lock(key);
  const bool exists = ctx.find(key) != nullptr;
  if (exists && !may_replace(ctx, options)) return std::nullopt;
  EntryPtr old;
  const int64_t expires_at_ms = entry->expires_at_ms();
  const bool is_over = entry->has_expiry() && expires_at_ms <= ctx.expiry_now_ms;
  if (!is_over) {
    old = ctx.keyspace().put(ctx.database(), key, std::move(entry));
    ctx.notify(KeyEvent::kNew, ctx.database(), key);
    commit_restore(ctx, key, options, expires_at_ms);
  } else if (exists) {
    old = ctx.keyspace().erase(ctx.database(), key);
    ctx.commit(key, KeyEvent::kDel, {"DEL", key.name});
  }
  return old;
}

/* RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency] */
void restore(Context& ctx) {
  const auto options = parse_restore(ctx.args.subspan(4));
  if (!options) return ctx.reply.error(options.error().message);
  const KeyRef key = ctx.key(1);
  if (!may_replace(ctx, *options) && is_taken(ctx, key)) return ctx.reply.error(kBusyKey);
  const auto expires_at_ms = restored_expiry(ctx, options->absolute);
  if (!expires_at_ms) return ctx.reply.error(expires_at_ms.error().message);
  auto entry = restored_entry(ctx.admission(), ctx.args[1], ctx.args[3]);
  if (!entry) return ctx.reply.error(entry.error().message);
  (*entry)->set_expires_at_ms(*expires_at_ms);
  set_use(ctx, *options, **entry);
  auto old = put_restored(ctx, key, *entry, *options);
  if (!old) return ctx.reply.error(kBusyKey);
  ctx.environment.reclaimer.drop(std::move(*old));
  ctx.reply.ok();
}

const Command kDumpRows[] = {
    {.name = "dump",
     .arity = 2,
     .flags = kReadOnly,
     .keys = one_key(kKeyRo | kKeyAccess),
     .categories = kKeyspace,
     .summary = "Returns the value of a key in the form that RESTORE reads",
     .complexity = "O(N) where N is the size of the value",
     .syntax = "key",
     .tips = kVaryingOutput,
     .handler = dump},
    {.name = "restore",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyOw | kKeyUpdate),
     .categories = kKeyspace | kDangerous,
     .summary = "Creates a key from the bytes that DUMP returned",
     .complexity = "O(N) where N is the size of the payload",
     .syntax = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     .handler = restore,
     .journalled = Journalled::kEffects},
    {.name = "restore-asking",
     .arity = -4,
     .flags = kWrite | kDenyOom | kClusterAsking,
     .keys = one_key(kKeyOw | kKeyUpdate),
     .categories = kKeyspace | kDangerous,
     .group = "server",
     .since = "3.0.0",
     .summary = "Does the same as RESTORE; MIGRATE of a Redis Cluster sends it",
     .complexity = "O(N) where N is the size of the payload",
     .syntax = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     .handler = restore,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kDumpCommands{{.group = "generic", .since = "2.6.0"}, kDumpRows};

}  // namespace server
