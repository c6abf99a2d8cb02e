// SPDX-License-Identifier: MIT
#include "server/dispatch/context.h"

#include <cassert>
#include <utility>

#include "server/base/process/memory_monitor.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/own_changes.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/use_rules.h"
#include "server/session/big_argument.h"
#include "server/session/observer.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/tracking.h"

namespace server {

Admission Context::admission() const {
  return {environment.config, environment.memory, session.origin};
}

Entry* Context::find(const KeyRef& key) {
  Entry* entry = command->has(kWrite)
                     ? environment.keyspace.find_for_write(database(), key, expiry_now_ms)
                     : peek(key);
  if (entry != nullptr && !client.no_touch) {
    record_access(*this, *entry);
  }
  return entry;
}

bool take_argument(const Context& ctx, std::string_view argument,
                   core::keyspace::ByteBuffer& bytes) {
  BigArgument* const big = ctx.request.big_argument;
  if (big == nullptr || big->is_taken() || big->text().data() != argument.data()) return false;
  // While a client is in MONITOR mode, the bytes are not moved out of the argument, because MONITOR
  // shows the whole command. The same holds with `slowlog-log-slower-than 0`.
  if (ctx.environment.observer.ticks_min() == 0) return false;
  bytes = big->take();
  return true;
}

void record_access(const Context& ctx, Entry& entry) {
  if (counts_uses(ctx.config())) [[unlikely]] {
    const auto used =
        core::keyspace::KeyUse(entry).used(ctx.access_clock_s(), use_rules(ctx.config()));
    entry.set_use_bits(used.bits());
  } else {
    entry.touch(ctx.access_clock_s());
  }
}

StripeLock Context::lock_keys() const {
  if (in_exec) return {};
  StripeMask mask = 0;
  for_each_key(*command->row, args, [&](size_t index, uint16_t) {
    mask |= core::keyspace::Keyspace::mask_of(key(index));
  });
  return environment.keyspace.lock(mask, lock_mode());
}

Arguments original_words(const Context& ctx, std::vector<std::string_view>& scratch) {
  const std::string_view name = ctx.command->first_word();
  if (protocol::equals_ignore_case(ctx.args[0], name)) return ctx.args;
  scratch.assign(ctx.args.begin(), ctx.args.end());
  scratch[0] = name;
  return scratch;
}

void journal_command(Context& ctx) {
  std::vector<std::string_view> scratch;
  ctx.journal(original_words(ctx, scratch));
}

bool Context::await(std::unique_ptr<AwaitedReply> awaited) {
  if (awaited->try_answer(reply, in_exec)) return false;
  assert(!in_exec);
  result.outcome = Outcome::kBlocked;
  result.pending.reply = std::move(awaited);
  result.pending.command_index = command->index;
  return true;
}

void Context::notify_miss(const KeyRef& key) {
  // A shared lock cannot delete the key. The event is deferred so that `expired` precedes
  // `keymiss`.
  const bool is_expired = session.origin == CommandOrigin::kClient &&
                          environment.keyspace.find_any(database(), key) != nullptr;
  if (!is_expired) return notify_event(KeyEvent::kMiss, database(), key);
  if (expired_keys == nullptr) expired_keys = std::make_unique<std::vector<ExpiredKey>>();
  expired_keys->push_back({database(), std::string(key.name)});
}

void expire_seen(Context& ctx) {
  const auto keys = std::exchange(ctx.expired_keys, nullptr);
  const bool may_delete = !ctx.environment.pause.holds_back(kWrite, ctx.now_ms);
  for (const auto& [database, name] : *keys) {
    const KeyRef key = ctx.keyspace().ref(name);
    const auto lock = ctx.keyspace().lock_exclusive(key);
    // On a replica, expired keys stay until the leader deletes them.
    if (may_delete && !ctx.environment.state.is_replica) {
      ctx.keyspace().find_for_write(database, key, ctx.expiry_now_ms);
    }
    ctx.environment.key_events.notify(KeyEvent::kMiss, database, key.name);
  }
}

void Context::notify_change(KeyEvent event, unsigned in_database, const KeyRef& key) const {
  if (is_own_change()) environment.own_changes.record_own_key(in_database, key.name);
  if (environment.state.listeners.has(ChangeListeners::kTracking)) {
    environment.tracking.invalidate({key.name, key.hash}, {client.id, client.thread_index});
  }
  notify_event(event, in_database, key);
}

void Context::notify_event(KeyEvent event, unsigned in_database, const KeyRef& key) const {
  environment.key_events.notify(event, in_database, key.name);
}

void Context::record_own_change() const {
  environment.own_changes.record_own_change();
}

void remember_keys(const Context& ctx) {
  const ClientTracking& tracking = *ctx.session.subscriptions.tracking();
  if (!ctx.command->has(kReadOnly) || tracking.is_broadcast) return;
  const bool is_caching_given = tracking.caching_family != nullptr;
  if (tracking.opts_in ? !is_caching_given : tracking.opts_out && is_caching_given) return;
  for_each_key(*ctx.command->row, ctx.args, [&](size_t index, uint16_t) {
    const KeyRef key = ctx.key(index);
    ctx.environment.tracking.remember({key.name, key.hash},
                                      {ctx.client.id, ctx.client.thread_index});
  });
}

void end_caching(const Context& ctx) {
  ClientTracking* const tracking = ctx.session.subscriptions.tracking();
  if (tracking == nullptr || ctx.session.transaction.active) return;
  const bool is_family = ctx.command != nullptr && ctx.command->container != nullptr &&
                         ctx.command->container == tracking->caching_family;
  if (!is_family) tracking->caching_family = nullptr;
}

}  // namespace server
