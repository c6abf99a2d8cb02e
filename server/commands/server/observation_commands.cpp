// SPDX-License-Identifier: MIT
//
// SLOWLOG and MONITOR: slow commands, and all commands as they arrive.

#include <limits>

#include "server/base/latency/slow_log.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/session/observer.h"

namespace server {
namespace {

constexpr int64_t kShownByDefault = 10;

void write_entry(const SlowCommand& entry, protocol::ReplyWriter& reply) {
  reply.array(6);
  reply.integer(static_cast<int64_t>(entry.id));
  reply.integer(entry.time_s);
  reply.integer(entry.duration_us);
  reply.array(entry.words.size());
  for (const std::string& word : entry.words) reply.bulk(word);
  reply.bulk(entry.address);
  reply.bulk(entry.client_name);
}

/* SLOWLOG GET [count] */
void slowlog_get(Context& ctx) {
  if (ctx.args.size() > 3) {
    return ctx.reply.error(protocol::wrong_subcommand(ctx.args[1], "SLOWLOG"));
  }
  int64_t count = kShownByDefault;
  if (ctx.args.size() == 3) {
    const auto given = core::parse_int64(ctx.args[2]);
    if (!given || *given < -1) {
      return ctx.reply.error("ERR count should be greater than or equal to -1");
    }
    count = *given == -1 ? std::numeric_limits<int64_t>::max() : *given;
  }
  const auto entries = ctx.services.observer.slow_log().newest(static_cast<size_t>(count));
  ctx.reply.array(entries.size());
  for (const auto& entry : entries) write_entry(*entry, ctx.reply);
}

/* SLOWLOG LEN */
void slowlog_len(Context& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.services.observer.slow_log().size()));
}

/* SLOWLOG RESET */
void slowlog_reset(Context& ctx) {
  ctx.services.observer.slow_log().clear();
  ctx.reply.ok();
}

/* MONITOR */
void monitor(Context& ctx) {
  if (ctx.in_exec) {
    return ctx.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  // As in Redis, a MONITOR from a connection that already monitors gets no reply.
  if (ctx.client.peer != Peer::kClient) return;
  ctx.reply.ok();
  ctx.services.observer.start_monitor(ctx.session);
}

constexpr Command kSlowlogSubcommands[] = {
    {.name = "get",
     .arity = -2,
     .summary = "Returns the last slow commands",
     .complexity = "O(N) where N is the number of entries returned",
     .syntax = "[count]",
     .tips = "request_policy:all_nodes nondeterministic_output",
     .handler = slowlog_get},
    {.name = "len",
     .arity = 2,
     .summary = "Returns how many slow commands are kept",
     .complexity = "O(1)",
     .tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
     .handler = slowlog_len},
    {.name = "reset",
     .arity = 2,
     .summary = "Forgets all slow commands",
     .complexity = "O(N) where N is the number of entries",
     .tips = "request_policy:all_nodes response_policy:all_succeeded",
     .handler = slowlog_reset},
};

const Command kObservationRows[] = {
    {.name = "monitor",
     .arity = 1,
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .since = "1.0.0",
     .summary = "Streams every command that clients run",
     .complexity = "O(N) for each command, where N is the number of monitors",
     .handler = monitor},
    {.name = "slowlog", .summary = "Returns the slow commands", .subcommands = kSlowlogSubcommands},
};

}  // namespace

const CommandFamily kObservationCommands{
    {.flags = kAdmin | kLoading | kStale, .group = "server", .since = "2.2.12"}, kObservationRows};

}  // namespace server
