// SPDX-License-Identifier: MIT
//
// KEYS and SCAN list keys by pattern, and RANDOMKEY returns a random key.
#include <fmt/format.h>

#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/commands/families.h"
#include "server/commands/keys/scan_arguments.h"
#include "server/commands/keys/value_type.h"
#include "server/dispatch/context.h"
#include "server/dispatch/own_keys.h"
#include "server/dispatch/pause_gate.h"

namespace server {
namespace {

// CopiedNames: names that are copied under a lock and matched after unlocking. One match may take
// many steps, during which writers of the stripe would have to wait.
class CopiedNames {
 public:
  void add(std::string_view name) {
    bytes_.append(name);
    ends_.push_back(bytes_.size());
  }
  // Calls visit(name) for each name, then clears the list.
  template <class Visit>
  void take_each(Visit&& visit) {
    size_t start = 0;
    for (const size_t end : ends_) {
      visit(std::string_view(bytes_).substr(start, end - start));
      start = end;
    }
    bytes_.clear();
    ends_.clear();
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// ExpiredNames: expired keys that a listing has found. As in Redis, the listing command deletes
// these keys, which matters if active expiry is off.
class ExpiredNames {
 public:
  void add(std::string_view name) {
    constexpr size_t kNamesMax = 1000;
    if (names_.size() < kNamesMax) names_.emplace_back(name);
  }
  // Deletes the collected keys. Does nothing on a replica, while writes are held back, or inside
  // EXEC, which already holds stripe locks.
  // REQUIRES: the caller holds no stripe's lock, except in EXEC.
  void expire(const Context& ctx) const {
    const bool is_leader =
        !ctx.environment.state.is_replica && ctx.session.origin == CommandOrigin::kClient;
    if (names_.empty() || !is_leader || ctx.in_exec) return;
    if (ctx.environment.pause.holds_back(kWrite, ctx.now_ms)) return;
    for (const std::string& name : names_) {
      const KeyRef key = ctx.keyspace().ref(name);
      const auto lock = ctx.keyspace().lock_exclusive(key);
      ctx.keyspace().find_for_write(ctx.database(), key, ctx.expiry_now_ms);
    }
  }

 private:
  std::vector<std::string> names_;
};

// Scans keys for which takes(entry) holds, and lists those whose names match. Copies the names of
// at most one stripe at a time. Returns the next cursor.
template <class Takes>
uint64_t list_names(const Context& ctx, const core::keyspace::ScanOptions& options,
                    const NamePattern& pattern, Takes&& takes, ReplyList& listed) {
  CopiedNames names;
  ExpiredNames expired;
  const OwnKeys own(ctx);
  const uint64_t next = ctx.keyspace().scan(
      ctx.database(), options,
      [&](const Entry& entry) {
        if (entry.expired(ctx.now_ms)) return expired.add(entry.key());
        if (!takes(entry)) return;
        if (own.shows(entry.key())) names.add(entry.key());
      },
      [&] {
        names.take_each([&](std::string_view name) {
          if (pattern.fits(name)) listed.add(name);
        });
      });
  expired.expire(ctx);
  return next;
}

core::keyspace::ScanOptions whole_scan(const Context& ctx) {
  return {.count = std::numeric_limits<size_t>::max(), .locking = ctx.locking()};
}

// Deletes expired keys, at most as many as ExpiredNames can hold.
void delete_expired(const Context& ctx) {
  ExpiredNames expired;
  ctx.keyspace().scan(ctx.database(), whole_scan(ctx), [&](const Entry& entry) {
    if (entry.expired(ctx.now_ms)) expired.add(entry.key());
  });
  expired.expire(ctx);
}

/* KEYS pattern */
// Outside EXEC, one stripe is locked at a time, so that no client waits for the whole listing. A
// key that is renamed during the listing may be missed or listed twice.
void keys(Context& ctx) {
  const NamePattern pattern(ctx.args[1]);
  ReplyList names(ctx.reply);
  list_names(
      ctx, whole_scan(ctx), pattern, [](const Entry&) { return true; }, names);
  names.write_to(ctx.reply);
}

/* SCAN cursor [MATCH pattern] [COUNT count] [TYPE type] */
void scan(Context& ctx) {
  const ScanArguments wanted = parse_scan(ctx, /*knows_type=*/true);
  if (!wanted.error.empty()) return ctx.reply.error(wanted.error);
  // MATCH and TYPE are applied to the keys visited, so that COUNT bounds the work and not the
  // reply.
  ReplyList names(ctx.reply);
  const NamePattern pattern(wanted.pattern);
  const auto has_type = [&](const Entry& entry) {
    return !wanted.type || protocol::equals_ignore_case(*wanted.type, type_name(entry));
  };
  const uint64_t next = list_names(ctx, wanted.options, pattern, has_type, names);
  ctx.reply.array(2);
  ctx.reply.bulk(fmt::format("{}", next));
  names.write_to(ctx.reply);
}

// Returns the first key that the client can see. Used if most keys of the keyspace are hidden from
// the client.
std::optional<std::string> first_own_key(const Context& ctx, const OwnKeys& own) {
  std::optional<std::string> found;
  core::keyspace::ScanOptions options{.cursor = 0, .count = 100, .locking = ctx.locking()};
  do {
    options.cursor = ctx.keyspace().scan(ctx.database(), options, [&](const Entry& entry) {
      const bool fits = !found && !entry.expired(ctx.now_ms) && own.shows(entry.key());
      if (fits) found.emplace(entry.key());
    });
  } while (options.cursor != 0 && !found);
  return found;
}

/* RANDOMKEY */
void randomkey(Context& ctx) {
  // Each thread has its own generator, because generators are not thread-safe. The numbers need no
  // cryptographic quality.
  thread_local std::mt19937_64 random(std::random_device{}());
  const OwnKeys own(ctx);
  constexpr int kDrawsMax = 100;
  for (int draw = 0; draw < kDrawsMax; ++draw) {
    std::string expired_name;
    const auto name =
        ctx.keyspace().random_key(ctx.database(), random, ctx.now_ms, ctx.locking(), &expired_name);
    if (!expired_name.empty()) {
      ExpiredNames expired;
      expired.add(expired_name);
      expired.expire(ctx);
    }
    if (!name) {
      if (!expired_name.empty()) delete_expired(ctx);
      break;
    }
    if (own.shows(*name)) return ctx.reply.bulk(*name);
  }
  const auto name = own.shows_all() ? std::nullopt : first_own_key(ctx, own);
  name ? ctx.reply.bulk(*name) : ctx.reply.null();
}

const Command kScanRows[] = {
    {.name = "keys",
     .arity = 2,
     .categories = kKeyspace | kDangerous,
     .summary = "Lists all keys that match a pattern",
     .complexity = "O(N) where N is the number of keys in the database",
     .syntax = "pattern",
     .tips = "request_policy:all_shards nondeterministic_output_order",
     .handler = keys},
    {.name = "randomkey",
     .arity = 1,
     .summary = "Returns a random key of the database",
     .complexity = "O(1)",
     .tips = "request_policy:all_shards nondeterministic_output",
     .handler = randomkey},
    {.name = "scan",
     .arity = -2,
     .since = "2.8.0",
     .summary = "Lists keys a few at a time",
     .complexity = "O(1) for each call, O(N) for all calls where N is the number of keys",
     .syntax = "cursor [MATCH pattern] [COUNT count] [TYPE type:string]",
     .tips = "nondeterministic_output request_policy:special",
     .handler = scan},
};

}  // namespace

const CommandFamily kScanCommands{{.flags = kReadOnly | kWholeKeyspace,
                                   .categories = kKeyspace,
                                   .group = "generic",
                                   .since = "1.0.0"},
                                  kScanRows};

}  // namespace server
