// SPDX-License-Identifier: MIT
//
// OBJECT reports the encoding, the reference count and the use of a value. No subcommand marks the
// key as used, because that would change the result.
#include <limits>

#include "core/keyspace/eviction_pool.h"
#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"
#include "server/dispatch/use_rules.h"

namespace server {
namespace {

using core::keyspace::KeyUse;

// Redis shares the objects of integers below this limit among keys, and OBJECT REFCOUNT replies
// with the maximum count for them. Clients and test suites rely on that reply.
constexpr int64_t kSharedIntegersEnd = 10'000;

// As in Redis, keys do not share objects if maxmemory is set and the policy is LRU or LFU. Under
// such a policy, each key's object records the use of that key.
bool may_share_integers(const Config& config) {
  const auto policy = eviction_policy(config);
  return !(is_lru(policy) || is_lfu(policy)) || config.integer(OptionId::kMaxMemory) == 0;
}

// Calls `answer` with the entry, or replies null if the key is missing.
template <class Answer>
void look_at(Context& ctx, Answer&& answer) {
  const KeyRef key = ctx.key(2);
  const auto lock = ctx.lock(key);
  // Unlike ctx.peek(), this lookup publishes no keymiss event.
  const Entry* entry = ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms);
  (entry != nullptr ? ctx.counters.keyspace_hits : ctx.counters.keyspace_misses).add();
  if (entry == nullptr) return ctx.reply.null();
  answer(*entry);
}

/* OBJECT ENCODING key */
void object_encoding(Context& ctx) {
  look_at(ctx, [&](const Entry& entry) { ctx.reply.bulk(entry.encoding()); });
}

/* OBJECT FREQ key */
void object_freq(Context& ctx) {
  look_at(ctx, [&](const Entry& entry) {
    if (counts_uses(ctx.config())) {
      const auto rules = use_rules(ctx.config());
      return ctx.reply.integer(KeyUse(entry).count(ctx.access_clock_s(), rules));
    }
    ctx.reply.error(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note "
        "that when switching between policies at runtime LRU and LFU data will take some time to "
        "adjust.");
  });
}

/* OBJECT IDLETIME key */
void object_idletime(Context& ctx) {
  look_at(ctx, [&](const Entry& entry) {
    if (!counts_uses(ctx.config())) {
      return ctx.reply.integer(KeyUse(entry).idle_s(ctx.access_clock_s()));
    }
    ctx.reply.error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at runtime LRU and LFU data will take some time to adjust.");
  });
}

/* OBJECT REFCOUNT key */
void object_refcount(Context& ctx) {
  look_at(ctx, [&](const Entry& entry) {
    const bool is_shared = may_share_integers(ctx.config()) &&
                           entry.kind() == core::keyspace::ValueKind::kInteger &&
                           entry.integer() >= 0 && entry.integer() < kSharedIntegersEnd;
    ctx.reply.integer(is_shared ? std::numeric_limits<int32_t>::max() : 1);
  });
}

const Command kObjectSubcommands[] = {
    {.name = "encoding",
     .arity = 3,
     .summary = "Returns the encoding of a value",
     .syntax = "key",
     .handler = object_encoding},
    {.name = "freq",
     .arity = 3,
     .since = "4.0.0",
     .summary = "Returns how often a key is used, where that is counted",
     .syntax = "key",
     .handler = object_freq},
    {.name = "idletime",
     .arity = 3,
     .summary = "Returns the seconds since a key was last used",
     .syntax = "key",
     .handler = object_idletime},
    {.name = "refcount",
     .arity = 3,
     .summary = "Returns the number of references to a value",
     .syntax = "key",
     .handler = object_refcount},
};

const Command kObjectRows[] = {
    {.name = "object",
     .summary = "Looks at how values are kept",
     .subcommands = kObjectSubcommands},
};

}  // namespace

const CommandFamily kObjectCommands{{.flags = kReadOnly,
                                     .keys = {{{2, 2, 1, kKeyRo}, {}}},
                                     .categories = kKeyspace,
                                     .group = "generic",
                                     .since = "2.2.3",
                                     .complexity = "O(1)",
                                     .tips = kVaryingOutput},
                                    kObjectRows};

}  // namespace server
