// SPDX-License-Identifier: MIT
//
// LATENCY reports slow events by kind, and the duration of commands.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/latency/latency_histogram.h"
#include "server/base/latency/latency_report.h"
#include "server/base/process/tick_clock.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/registry.h"
#include "server/session/observer.h"

namespace server {
namespace {

LatencyMonitor& monitor_of(const Context& ctx) {
  return ctx.services.observer.latency();
}

/* LATENCY LATEST */
void latency_latest(Context& ctx) {
  const auto events = monitor_of(ctx).events();
  ctx.reply.array(events.size());
  for (const auto& [kind, of_kind] : events) {
    ctx.reply.array(4);
    ctx.reply.bulk(kind);
    ctx.reply.integer(of_kind.samples.back().time_s);
    ctx.reply.integer(of_kind.samples.back().duration_ms);
    ctx.reply.integer(of_kind.longest_ms);
  }
}

/* LATENCY HISTORY event */
void latency_history(Context& ctx) {
  const auto events = monitor_of(ctx).events();
  const auto found = events.find(ctx.args[2]);
  if (found == events.end()) return ctx.reply.array(0);
  ctx.reply.array(found->second.samples.size());
  for (const LatencySample& sample : found->second.samples) {
    ctx.reply.array(2);
    ctx.reply.integer(sample.time_s);
    ctx.reply.integer(sample.duration_ms);
  }
}

/* LATENCY GRAPH event */
void latency_graph_command(Context& ctx) {
  const auto events = monitor_of(ctx).events();
  const auto found = events.find(ctx.args[2]);
  if (found == events.end()) {
    return ctx.reply.error(fmt::format("ERR No samples available for event '{}'", ctx.args[2]));
  }
  ctx.reply.verbatim(latency_graph(found->first, found->second, ctx.now_ms / 1000), "txt");
}

/* LATENCY DOCTOR */
void latency_doctor(Context& ctx) {
  const LatencySettings settings{
      .threshold_ms = ctx.config().integer(OptionId::kLatencyMonitorThreshold),
      .slowlog_slow_us = ctx.config().integer(OptionId::kSlowlogLogSlowerThan)};
  ctx.reply.verbatim(latency_diagnosis(monitor_of(ctx).events(), settings), "txt");
}

/* LATENCY RESET [event ...] */
void latency_reset(Context& ctx) {
  size_t count = 0;
  if (ctx.args.size() == 2) count = monitor_of(ctx).reset_all();
  for (const std::string_view kind : ctx.args.subspan(2)) count += monitor_of(ctx).reset(kind);
  ctx.reply.integer(static_cast<int64_t>(count));
}

struct CountedCommand {
  const RegisteredCommand* command;
  LatencyCounts counts;
};

// Collects the latencies of the command and of its subcommands. Commands that never ran are
// omitted.
void collect(const Context& ctx, const RegisteredCommand& command,
             std::vector<CountedCommand>& found) {
  LatencyCounts counts = ctx.services.statistics.latencies(command.index);
  if (counts.total() > 0) found.push_back({&command, std::move(counts)});
  for (const RegisteredCommand* subcommand : command.subcommands) collect(ctx, *subcommand, found);
}

// Writes a cumulative histogram. The upper bounds of its buckets are powers of two, from about a
// microsecond on. Each bucket has the number of calls that took at most its upper bound. A bucket
// with the same number as the bucket before is omitted.
void write_distribution(const TickClock& ticks, const LatencyCounts& counts,
                        protocol::ReplyWriter& reply) {
  constexpr uint64_t kFirstNs = 1024;
  // Number of subdivisions of each power of two in Redis' histogram.
  constexpr uint64_t kStepsPerPower = 128;
  const double ticks_per_ns = ticks.ticks_per_microsecond() / 1000;
  const uint64_t total = counts.total();
  std::vector<std::pair<uint64_t, uint64_t>> steps;
  uint64_t before = 0;
  for (uint64_t ns = kFirstNs; before < total; ns *= 2) {
    const uint64_t last_ns = ns + ns / kStepsPerPower - 1;
    const bool is_last = ns >= (uint64_t{1} << 62);
    const uint64_t count =
        is_last ? total : counts.count_up_to(static_cast<double>(last_ns) * ticks_per_ns);
    if (count > before) steps.emplace_back(last_ns / 1000, count);
    before = count;
  }
  reply.map(2);
  reply.bulk("calls");
  reply.integer(static_cast<int64_t>(total));
  reply.bulk("histogram_usec");
  reply.map(steps.size());
  for (const auto& [microseconds, count] : steps) {
    reply.integer(static_cast<int64_t>(microseconds));
    reply.integer(static_cast<int64_t>(count));
  }
}

/* LATENCY HISTOGRAM [command ...] */
void latency_histogram(Context& ctx) {
  const Registry& registry = ctx.services.registry;
  std::vector<CountedCommand> found;
  if (ctx.args.size() == 2) {
    for (const RegisteredCommand* command : registry.commands()) collect(ctx, *command, found);
  }
  for (const std::string_view name : ctx.args.subspan(2)) {
    const RegisteredCommand* command = registry.find_by_full_name(name);
    if (command != nullptr) collect(ctx, *command, found);
  }
  ctx.reply.map(found.size());
  for (const CountedCommand& one : found) {
    ctx.reply.bulk(one.command->full_name);
    write_distribution(ctx.services.ticks, one.counts, ctx.reply);
  }
}

constexpr uint32_t kLatencyFlags = kAdmin | kNoScript | kLoading | kStale;

const Command kLatencySubcommands[] = {
    {.name = "doctor",
     .arity = 2,
     .summary = "Reports slow events, and advice",
     .handler = latency_doctor},
    {.name = "graph",
     .arity = 3,
     .summary = "Draws the slow events of one kind",
     .syntax = "event",
     .handler = latency_graph_command},
    {.name = "histogram",
     .arity = -2,
     .since = "7.0.0",
     .summary = "Returns how often commands took how long",
     .complexity = "O(N) where N is the number of commands with latency information being "
                   "retrieved",
     .syntax = "[command ...]",
     .handler = latency_histogram},
    {.name = "history",
     .arity = 3,
     .summary = "Returns the slow events of one kind",
     .syntax = "event",
     .handler = latency_history},
    {.name = "latest",
     .arity = 2,
     .summary = "Returns the last slow event of each kind",
     .handler = latency_latest},
    {.name = "reset",
     .arity = -2,
     .summary = "Forgets the slow events of some kinds, or of all",
     .syntax = "[event ...]",
     .tips = "request_policy:all_nodes response_policy:all_succeeded",
     .handler = latency_reset},
};

const Command kLatencyRows[] = {
    {.name = "latency",
     .summary = "Returns slow events and the latency of commands",
     .subcommands = kLatencySubcommands},
};

}  // namespace

const CommandFamily kLatencyCommands{
    {.flags = kLatencyFlags,
     .group = "server",
     .since = "2.8.13",
     .complexity = "O(1)",
     .tips = "nondeterministic_output request_policy:all_nodes response_policy:special"},
    kLatencyRows};

}  // namespace server
