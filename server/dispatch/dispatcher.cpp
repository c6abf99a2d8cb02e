// SPDX-License-Identifier: MIT
#include "server/dispatch/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "core/keyspace/key_hash.h"
#include "core/short_bytes.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/process/memory_monitor.h"
#include "server/cluster/cluster_state.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/commit_check.h"
#include "server/dispatch/context.h"
#include "server/dispatch/http_guard.h"
#include "server/dispatch/key_routing.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/session/acl/users.h"
#include "server/session/invalidation_news.h"
#include "server/session/observer.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"

namespace server {
namespace {

// As in Redis, an error quotes at most this many bytes of a name, and of all arguments together.
constexpr size_t kQuotedBytesMax = 128;

// Returns the part of a word that Redis quotes in errors: it ends at a zero byte.
std::string_view quoted(std::string_view word, size_t room) {
  return word.substr(0, std::min(room, word.find('\0')));
}

std::string unknown_command_text(Arguments args) {
  std::string arguments;
  for (size_t i = 1; i < args.size() && arguments.size() < kQuotedBytesMax; ++i) {
    arguments += fmt::format("'{}' ", quoted(args[i], kQuotedBytesMax - arguments.size()));
  }
  return protocol::unknown_command(quoted(args[0], kQuotedBytesMax), arguments);
}

std::string unknown_subcommand_text(const RegisteredCommand& container, Arguments args) {
  return protocol::unknown_subcommand(quoted(args[1], kQuotedBytesMax),
                                      protocol::upper_case(container.row->name));
}

// The error for a client in MONITOR mode that accesses keys. As in Redis, the text names replicas.
constexpr std::string_view kMonitorReachesForKeys = "ERR Replica can't interact with the keyspace";

// Returns whether check_arguments() must be called, which is rarely the case.
bool needs_checks(const Environment& environment, const Session& session,
                  const RegisteredCommand& command, Arguments args) {
  return !command.arity_fits(args.size()) || !session.authenticated || session.transaction.active ||
         session.is_in_subscriber_mode() ||
         (session.identity.trusted_version != environment.users.version() &&
          !has_plain_rights(session.identity, environment.users.version(), command, args) &&
          !has_rights(session.identity, environment.users, command, args));
}

// Returns the first key of the request. REQUIRES: the key was hashed.
KeyRef key_of(const Request& request) {
  return {request.key, request.key_hash};
}

}  // namespace

Dispatcher::Dispatcher(Environment& environment, ThreadStatistics& counters, Session& session)
    : environment_(environment), counters_(counters), session_(session), client_(*session.client) {}

inline const RegisteredCommand* Dispatcher::find(Arguments args) {
  const bool is_last = core::equal_bytes({last_name_.data(), last_name_size_}, args[0]);
  return is_last ? last_command_ : look_up(args[0]);
}

const RegisteredCommand* Dispatcher::look_up(std::string_view name) {
  const bool is_client = session_.origin == CommandOrigin::kClient;
  const Registry& registry = environment_.registry;
  const auto* command = is_client ? registry.find(name) : registry.find_replayed(name);
  if (command != nullptr && name.size() <= last_name_.size()) {
    std::memcpy(last_name_.data(), name.data(), name.size());
    last_name_size_ = name.size();
    last_command_ = command;
  }
  return command;
}

// In a cluster, the hash of a key contains its slot, which look_ahead() has computed.
inline bool Dispatcher::serves_first_key(const Context& ctx) const {
  const Request& request = ctx.request;
  return request.key.data() != nullptr && ctx.command->needs.kind == Needs::kFirstArgument &&
         environment_.cluster.serves(client_.view_index,
                                     core::keyspace::slot_of_hash(request.key_hash));
}

inline bool Dispatcher::may_be_refused(const Context& ctx, uint32_t flags) const {
  const Availability& availability = environment_.state.availability;
  const bool is_restricted =
      availability.any() && (availability.any_passing() || !serves_first_key(ctx));
  return is_restricted || client_.peer == Peer::kMonitor ||
         (environment_.memory.limit_bytes() != 0 &&
          ctx.admission().is_over_memory_limit({session_, ctx.args, (flags & kDenyOom) != 0}));
}

core::Result<> Dispatcher::check_arguments(Context& ctx) const {
  const RegisteredCommand* const command = ctx.command;
  if (!command->arity_fits(ctx.args.size())) {
    return core::Error{protocol::wrong_arity(command->full_name)};
  }
  if (std::string fault = rights_fault(ctx); !fault.empty()) return core::Error{std::move(fault)};
  if (session_.origin != CommandOrigin::kClient) return {};
  if (session_.is_in_subscriber_mode() && !command->has(kInSubscriberMode)) {
    // As in Redis, MOVED takes precedence over the error for a client with subscriptions.
    const auto routing = KeyRouting::of(ctx, command->row->flags);
    if (!routing.is_served()) return routing.error(ctx);
    return core::Error{fmt::format(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
        "allowed in this context",
        command->full_name)};
  }
  return {};
}

core::Result<> Dispatcher::check_state(const Context& ctx, uint32_t flags) const {
  if (environment_.state.availability.any_passing()) [[unlikely]] {
    const uint32_t queued = ctx.command->has(kRunsQueue) ? session_.transaction.common_flags : ~0U;
    const uint32_t allowed = ctx.command->row->flags & queued;
    if (auto available = check_availability(flags, allowed); !available) return available;
  }
  // As in Redis, any command may evict keys, but only commands that may need memory are rejected.
  const bool may_need = (flags & kDenyOom) != 0;
  const bool has_room = ctx.admission().make_room({session_, ctx.args, may_need});
  if (may_need && !has_room) return out_of_memory();
  if (client_.peer == Peer::kMonitor && (flags & (kWrite | kReadOnly | kMayReplicate)) != 0) {
    return core::Error{std::string(kMonitorReachesForKeys)};
  }
  return {};
}

inline bool Dispatcher::may_be_held_back() const {
  return environment_.pause.may_hold_back() || environment_.pubsub.is_congested();
}

bool Dispatcher::is_held_back(uint32_t flags, int64_t now_ms) const {
  if (environment_.pause.holds_back(flags, now_ms)) return true;
  if (!environment_.pubsub.is_congested()) return false;
  // Only commands that read or write keys publish keyspace events.
  const bool notifies = environment_.state.listeners.any() && (flags & (kWrite | kReadOnly)) != 0;
  return notifies || (flags & kMayReplicate) != 0;
}

// The order of the checks is that of Redis.
core::Result<> Dispatcher::check_availability(uint32_t flags, uint32_t permissions) const {
  const Availability& availability = environment_.state.availability;
  if ((flags & (kWrite | kReportsMisconf)) != 0) {
    std::string text =
        availability.write_refusal(stops_writes_on_snapshot_error(environment_.config));
    if (!text.empty()) return core::Error{std::move(text)};
  }
  if ((flags & kWrite) != 0) {
    if (availability.has(Availability::kTooFewReplicas)) {
      return core::Error{std::string(kNotEnoughReplicas)};
    }
    if (availability.has(Availability::kReadOnlyReplica)) {
      return core::Error{std::string(kReplicaIsReadOnly), core::ErrorCode::kReadOnly};
    }
  }
  if (availability.has(Availability::kStaleReplica) && (permissions & kStale) == 0) {
    return core::Error{std::string(kLinkIsDown)};
  }
  if (availability.has(Availability::kLoading) && (permissions & kLoading) == 0) {
    return core::Error{std::string(kServerIsLoading)};
  }
  return {};
}

CommandResult Dispatcher::execute(const Request& request, int64_t now_ms,
                                  protocol::OutputBuffer& replies) {
  size_t mark = replies.size();
  CommandResult result;
  Context ctx({environment_, counters_, session_, *this}, request,
              protocol::ReplyWriter(replies, client_.resp), now_ms, result);
  const auto* command = request.command != nullptr ? request.command : find(request.args);
  if (command == nullptr || !command->subcommands.empty()) [[unlikely]] {
    command = resolve(ctx, command);
    if (command == nullptr) {
      finish(ctx, mark);
      return result;
    }
  }
  ctx.command = command;
  client_.traffic.last_command = &command->full_name;
  Transaction& transaction = session_.transaction;
  const bool queues = transaction.active && !command->has(kImmediate);
  // The flag kDenyOom is added for a queued command, because queueing it needs memory.
  const uint32_t flags = command->row->flags | (queues ? uint32_t{kDenyOom} : 0) |
                         (command->has(kRunsQueue) ? transaction.queued_flags : 0);
  if (needs_checks(environment_, session_, *command, request.args)) [[unlikely]] {
    if (const auto checked = check_arguments(ctx); !checked) {
      reject(ctx, checked.error());
      finish(ctx, mark);
      return result;
    }
  }
  if (session_.origin == CommandOrigin::kClient) [[likely]] {
    // A replica's acknowledgements are never held back: without them the leader closes the link.
    if (may_be_held_back() && !queues && client_.peer != Peer::kReplica &&
        is_held_back(flags, now_ms)) [[unlikely]] {
      result.outcome = Outcome::kHeldBack;
      return result;
    }
    if (may_be_refused(ctx, flags)) [[unlikely]] {
      if (!admit(ctx, flags, queues)) {
        if (result.outcome != Outcome::kHeldBack) finish(ctx, mark);
        return result;
      }
      // admit() may have evicted keys that this client tracks. The client must get their
      // invalidations before the values that this command reads.
      replies.append(take_invalidation_news(environment_.pubsub, environment_.tracking, session_));
      result.pushed_bytes = replies.size() - mark;
      mark = replies.size();
      begin_ticks_ = TickClock::now();  // eviction does not count as the command's own time
    }
  }
  if (queues) [[unlikely]] {
    queue(ctx);
    finish(ctx, mark);
    return result;
  }
  ctx.result.may_have_written = (flags & kWrite) != 0;
  // PUBLISH extends the replication stream, too.
  session_.has_new_write |= (flags & (kWrite | kMayReplicate)) != 0;
  const bool tracks = session_.subscriptions.tracking() != nullptr;
  if (tracks) [[unlikely]]
    remember_keys(ctx);
  run(ctx);
  if (ctx.expired_keys != nullptr) [[unlikely]]
    expire_seen(ctx);
  if (tracks) [[unlikely]]
    end_caching(ctx);
  finish(ctx, mark);
  return result;
}

const RegisteredCommand* Dispatcher::resolve(Context& ctx, const RegisteredCommand* command) {
  if (command != nullptr && ctx.args.size() == 1) return command;
  if (command != nullptr) {
    const auto* const found = environment_.registry.find_subcommand(*command, ctx.args[1]);
    if (found != nullptr) return found;
  }
  client_.traffic.last_command = nullptr;
  if (command != nullptr) {
    refuse(ctx, {unknown_subcommand_text(*command, ctx.args)});
  } else if (session_.origin == CommandOrigin::kClient && is_http_word(ctx.args[0])) {
    warn_of_http(client_.address, ctx.now_ms);
    ctx.close_after_reply();
  } else {
    refuse(ctx, {unknown_command_text(ctx.args)});
  }
  return nullptr;
}

bool Dispatcher::admit(Context& ctx, uint32_t flags, bool queues) {
  const auto routing = KeyRouting::of(ctx, flags);
  const auto queue_or_wait = [&] {
    if (!queues) ctx.result.outcome = Outcome::kHeldBack;
    return queues;
  };
  if (routing.is_held() && !queues) return queue_or_wait();
  const core::Result<> checked =
      routing.is_served() ? check_state(ctx, flags) : core::Result<>(routing.error(ctx));
  if (checked) return true;
  if (routing.awaits_view(checked.error())) return queue_or_wait();
  reject(ctx, checked.error());
  return false;
}

void Dispatcher::finish(Context& ctx, size_t mark) {
  if (session_.reply_mode != ReplyMode::kOn) [[unlikely]]
    apply_reply_mode(ctx, mark);
}

[[gnu::always_inline]] inline bool Dispatcher::prepare(Request& request, const Request* before) {
  request.command = find(request.args);
  if (request.command == nullptr || request.args.size() < 2) return false;
  if (request.command->row->keys[0].first != 1) return false;
  request.key = request.args[1];
  // Pipelines often repeat a key, so the hash of the preceding request's key is reused.
  const bool is_the_same = before != nullptr && core::equal_bytes(before->key, request.key);
  request.key_hash = is_the_same ? before->key_hash : environment_.keyspace.ref(request.key).hash;
  return true;
}

void Dispatcher::look_ahead(std::span<Request> requests, int64_t now_ms) {
  assert(requests.size() <= kLookAheadMax);
  if (!session_.transaction.active) prefetch(requests, now_ms);
  begin_ticks_ = TickClock::now();
}

void Dispatcher::prefetch(std::span<Request> requests, int64_t now_ms) {
  auto& keyspace = environment_.keyspace;
  const auto database = static_cast<unsigned>(client_.database);
  std::array<Request*, kLookAheadMax> cold;
  size_t cold_count = 0;
  // The requests whose commands have a function that prefetches parts of the key's value.
  std::array<Request*, kLookAheadMax> touched;
  size_t touched_count = 0;
  core::keyspace::StripeMask stripes = 0;
  const Request* before = nullptr;
  for (Request& request : requests) {
    if (!prepare(request, before) || requests.size() == 1) continue;
    // If the preceding request has the same key, its prefetch also serves this request.
    const bool is_cold = keyspace.is_worth_prefetching(database, key_of(request)) &&
                         (before == nullptr || before->key_hash != request.key_hash);
    before = &request;
    const bool has_prefetch = request.command->row->prefetch != nullptr;
    if (!is_cold && !has_prefetch) continue;
    if (is_cold) cold[cold_count++] = &request;
    if (has_prefetch) touched[touched_count++] = &request;
    stripes |= core::keyspace::Keyspace::mask_of(key_of(request));
  }
  // One call locks the stripes of all keys, because a separate lock for each key would take longer
  // than the prefetches.
  const auto lock = keyspace.lock(stripes, core::keyspace::LockMode::kShared);
  for (const core::keyspace::PrefetchStep step : core::keyspace::kPrefetchSteps) {
    for (const Request* request : std::span(cold).first(cold_count)) {
      keyspace.prefetch(database, key_of(*request), step);
    }
  }
  const auto all = std::span<Request* const>(touched).first(touched_count);
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end]->key_hash == all[i]->key_hash) ++end;
    prefetch_values(all.subspan(i, end - i), now_ms);
    i = end;
  }
}

void Dispatcher::prefetch_values(std::span<Request* const> same_key, int64_t now_ms) {
  const KeyRef key = key_of(*same_key.front());
  const Entry* entry =
      environment_.keyspace.find(static_cast<unsigned>(client_.database), key, now_ms);
  if (entry == nullptr) return;
  std::array<Request*, kLookAheadMax> valid;
  size_t valid_count = 0;
  for (Request* request : same_key) {
    if (request->command->arity_fits(request->args.size())) valid[valid_count++] = request;
  }
  const auto all = std::span<Request* const>(valid).first(valid_count);
  for (size_t i = 0; i < all.size();) {
    const auto prefetch = all[i]->command->row->prefetch;
    size_t end = i + 1;
    while (end < all.size() && all[end]->command->row->prefetch == prefetch) ++end;
    prefetch(*entry, all.subspan(i, end - i));
    i = end;
  }
}

void Dispatcher::refuse(Context& ctx, const core::Error& error) {
  const auto answer = [&](std::string_view text) {
    environment_.statistics.count_error(protocol::error_code(text));
    ctx.reply.error(text);
  };
  std::string_view text = error.message;
  if (ctx.command != nullptr && ctx.command->has(kRunsQueue)) {
    discard_transaction(environment_.keyspace, session_);
    // EXEC replies with a routing error such as MOVED unchanged, because cluster clients need that
    // error to find the server that owns the keys.
    if (error.code == core::ErrorCode::kMisrouted) return answer(text);
    if (text.starts_with("ERR ")) text.remove_prefix(4);
    return answer(fmt::format("EXECABORT Transaction discarded because of: {}", text));
  }
  if (session_.transaction.active) session_.transaction.aborted = true;
  end_caching(ctx);
  answer(text);
}

void Dispatcher::reject(Context& ctx, const core::Error& error) {
  counters_.commands[ctx.command->index].rejected.add();
  refuse(ctx, error);
}

void Dispatcher::queue(Context& ctx) {
  Transaction& transaction = session_.transaction;
  // EXEC will fail, so the command is not stored, which saves memory.
  const bool is_lost = transaction.watch_flag != nullptr && transaction.watch_flag->dirty;
  if (transaction.aborted || is_lost) return ctx.reply.status("QUEUED");
  QueuedCommand queued{ctx.command, {ctx.args.begin(), ctx.args.end()}};
  uint64_t bytes = sizeof queued;
  for (const std::string& argument : queued.arguments) bytes += sizeof argument + argument.size();
  client_.queued_bytes += bytes;
  transaction.queued_flags |= ctx.command->row->flags;
  transaction.common_flags &= ctx.command->row->flags;
  transaction.queue.push_back(std::move(queued));
  session_.publish_transaction();
  ctx.reply.status("QUEUED");
}

void Dispatcher::run(Context& ctx) {
  const protocol::OutputBuffer& replies = ctx.reply.buffer();
  const size_t mark = replies.size();
  const uint64_t start = begin_ticks_;
  ctx.commits.begin();
  counters_.trail.record(counters_.commands_processed.value(), ctx.command->full_name);
  run_handler(ctx);
  begin_ticks_ = TickClock::now();
  const uint64_t ticks = begin_ticks_ - start;
  CommandCounters& counters = counters_.commands[ctx.command->index];
  counters.ticks.add(ticks);
  counters.calls.add();
  if (environment_.config.flag(OptionId::kLatencyTracking)) counters.add_latency(ticks);
  counters_.commands_processed.add();
  client_.traffic.commands += 1;
  const bool is_error = replies.size() > mark && replies.data()[mark] == '-';
  if (is_error && !replies.has_overflowed()) [[unlikely]] {
    environment_.statistics.count_if_error(counters,
                                           {replies.data() + mark, replies.size() - mark});
  }
  if (ticks >= environment_.observer.ticks_min()) [[unlikely]] {
    observe(ctx, ticks);
    begin_ticks_ = TickClock::now();
  }
}

void Dispatcher::observe(const Context& ctx, uint64_t ticks) {
  // As in Redis, MONITOR does not show commands from a file, but shows those from a leader.
  const bool is_stream = &counters_ == &environment_.statistics.stream();
  if (session_.origin != CommandOrigin::kClient && !is_stream) return;
  environment_.observer.observe(
      {.session = session_,
       .words = ctx.args,
       .ticks = ticks,
       .big_argument = ctx.request.big_argument,
       .hides = ctx.command->row->hides,
       .is_fast = ctx.command->has(kFast),
       // A command that waits, such as WAIT, is not added to the slow log, because waiting is not
       // slow execution.
       .is_in_slow_log = !ctx.command->has(kSkipSlowlog) && ctx.result.pending.reply == nullptr,
       .is_monitored = !ctx.command->has(kSkipMonitor | kAdmin)});
}

void Dispatcher::run_queued(Context& ctx, const QueuedCommand& queued) {
  const std::vector<std::string_view> args = queued.words();
  ctx.args = args;
  ctx.command = queued.command;
  if (session_.identity.trusted_version != environment_.users.version() &&
      !has_rights(session_.identity, environment_.users, *ctx.command, args)) [[unlikely]] {
    // Permissions may have changed since the command was queued, even by the same transaction.
    if (const std::string error = rights_fault(ctx); !error.empty()) {
      environment_.statistics.count_error(protocol::error_code(error));
      return ctx.reply.error(error);
    }
  }
  if (session_.subscriptions.tracking() != nullptr) remember_keys(ctx);
  run(ctx);
}

void Dispatcher::apply_reply_mode(Context& ctx, size_t mark) {
  protocol::OutputBuffer& replies = ctx.reply.buffer();
  // Errors and QUEUED are ordinary replies, even for a command whose replies are push messages.
  const bool is_push = ctx.command != nullptr && ctx.command->has(kRepliesByPush) &&
                       replies.size() > mark &&
                       (replies.data()[mark] == '*' || replies.data()[mark] == '>');
  if (is_push) mark = replies.size();
  if (ctx.result.pending.reply != nullptr && session_.reply_mode != ReplyMode::kSkipNext) {
    ctx.result.pending.is_silent = true;
  }
  switch (session_.reply_mode) {
    case ReplyMode::kOn:
      return;
    case ReplyMode::kOff:
      break;
    case ReplyMode::kSkipNext:  // CLIENT REPLY SKIP and the next command have no reply
      session_.reply_mode = ReplyMode::kSkipThis;
      break;
    case ReplyMode::kSkipThis:
      session_.reply_mode = ReplyMode::kOn;
      break;
  }
  replies.truncate(mark);
}

void Dispatcher::end_session() {
  if (session_.replica != nullptr && session_.replica->on_end) session_.replica->on_end();
  discard_transaction(environment_.keyspace, session_);
  unsubscribe_all(environment_.pubsub, session_);
  if (environment_.state.listeners.has(ChangeListeners::kTracking)) {
    environment_.tracking.forget(client_.id);
  }
  environment_.observer.stop_monitor(session_);
}

void unwatch_all(core::keyspace::Keyspace& keyspace, Session& session) {
  Transaction& transaction = session.transaction;
  for (const auto& watched : transaction.watched) {
    const KeyRef key = keyspace.ref(watched.key);
    const auto lock = keyspace.lock_exclusive(key);
    keyspace.unwatch(static_cast<unsigned>(watched.database), key, transaction.watch_flag);
  }
  transaction.watched.clear();
  transaction.watch_flag.reset();
  session.client->watched_keys = 0;
  session.client->watched_bytes = 0;
}

void discard_transaction(core::keyspace::Keyspace& keyspace, Session& session) {
  unwatch_all(keyspace, session);
  session.transaction = Transaction{};
  session.publish_transaction();
}

}  // namespace server
