// SPDX-License-Identifier: MIT
//
// DEBUG has subcommands for tests. It needs the option enable-debug-command.
#include <chrono>
#include <thread>

#include "core/number.h"
#include "server/commands/families.h"
#include "server/commands/server/debug_words.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/durability.h"
#include "server/durability/loading/data_loader.h"
#include "server/session/clients.h"
#include "server/session/deferred_reply.h"

namespace server {
namespace {

// Blocks writes, waits until no command is running, and loads all keys again. Replies at the end.
template <class Load>
void reload_when_drained(Context& ctx, Load load) {
  Durability& durability = ctx.services.durability;
  if (auto begun = durability.loader().begin_reload(); !begun) {
    return ctx.reply.error(begun.error().message);
  }
  PauseGate& pause = ctx.services.pause;
  pause.hold_writes(PauseGate::Hold::kReload);
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.client.id);
  pause.drain([&durability, &pause, load, end = reply.end] {
    const auto done = load(durability);
    durability.loader().end_reload([&pause] { pause.release_writes(PauseGate::Hold::kReload); });
    end(done);
  });
  ctx.await(std::move(reply.awaited));
}

/* DEBUG RELOAD [NOSAVE] */
void reload(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  bool saves = true;
  for (const std::string_view option : ctx.args.subspan(2)) {
    if (!protocol::equals_ignore_case(option, "NOSAVE")) return ctx.reply.error(kSyntaxError);
    saves = false;
  }
  reload_when_drained(
      ctx, [saves](Durability& durability) { return durability.loader().reload_snapshot(saves); });
}

/* DEBUG LOADAOF */
void loadaof(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  reload_when_drained(ctx, [](Durability& durability) { return durability.loader().reload_log(); });
}

/* DEBUG SLEEP seconds */
void sleep(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  constexpr double kLongestS = 3600;
  const auto seconds = core::parse_double(ctx.args[2]);
  if (!seconds || *seconds < 0 || *seconds > kLongestS) return ctx.reply.error(kNotAFloat);
  std::this_thread::sleep_for(std::chrono::duration<double>(*seconds));
  ctx.reply.ok();
}

constexpr uint32_t kDebugFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr Command kDebugSubcommands[] = {
    {.name = "digest",
     .arity = 2,
     .flags = kDebugFlags | kWholeKeyspace,
     .summary = "Returns a digest of all keys",
     .complexity = "O(N) where N is the size of all values",
     .handler = debug_digest},
    {.name = "digest-value",
     .arity = -3,
     .flags = kDebugFlags | kWholeKeyspace,
     .summary = "Returns digests of values",
     .complexity = "O(N) where N is the size of the values named",
     .syntax = "key ...",
     .handler = debug_digest_value},
    {.name = "reload",
     .arity = -2,
     .flags = kDebugFlags | kNoMulti,
     .summary = "Saves a snapshot, drops all keys and loads it",
     .complexity = "O(N) where N is the size of all values",
     .syntax = "[NOSAVE]",
     .handler = reload},
    {.name = "loadaof",
     .arity = 2,
     .flags = kDebugFlags | kNoMulti,
     .summary = "Drops all keys and loads the append log",
     .complexity = "O(N) where N is the size of the append log",
     .handler = loadaof},
    {.name = "change-repl-id",
     .arity = 2,
     .since = "5.0.0",
     .summary = "Gives the replication stream a new id",
     .handler = debug_change_replication_id},
    {.name = "error",
     .arity = 3,
     .since = "3.0.0",
     .summary = "Answers with the message as an error",
     .syntax = "message",
     .handler = debug_error},
    {.name = "log",
     .arity = 3,
     .since = "7.0.0",
     .summary = "Writes a message to the log",
     .syntax = "message",
     .handler = debug_log},
    {.name = "object",
     .arity = 3,
     .summary = "Returns how the value of a key is stored",
     .complexity = "O(N) where N is the size of a string",
     .syntax = "key",
     .handler = debug_object},
    {.name = "populate",
     .arity = -3,
     .flags = kDebugFlags | kWrite | kDenyOom | kWholeKeyspace,
     .since = "3.0.0",
     .summary = "Creates keys with strings",
     .complexity = "O(N) where N is the number of keys",
     .syntax = "count [prefix] [size]",
     .handler = debug_populate,
     .journalled = Journalled::kEffects},
    {.name = "protocol",
     .arity = 3,
     .since = "6.0.0",
     .summary = "Answers with a sample of a type of reply",
     .syntax = "type",
     .handler = debug_protocol},
    {.name = "replybuffer",
     .arity = 4,
     .since = "7.0.0",
     .summary = "Is accepted: reply buffers need no tuning",
     .syntax = "PEAK-RESET-TIME milliseconds | RESIZING flag",
     .handler = debug_replybuffer},
    {.name = "set-active-expire",
     .arity = 3,
     .since = "3.0.0",
     .summary = "Switches the background deletion of expired keys",
     .syntax = "0 | 1",
     .handler = debug_set_active_expire},
    {.name = "pause-cron",
     .arity = 3,
     .since = "7.0.0",
     .summary = "Stops the periodic tasks, and lets them go on",
     .syntax = "0 | 1",
     .handler = debug_pause_cron},
    {.name = "config-rewrite-force-all",
     .arity = 2,
     .since = "7.0.0",
     .summary = "Rewrites the configuration file with a line for every option",
     .complexity = "O(N) where N is the size of the file",
     .handler = debug_rewrite_config},
    {.name = "help",
     .arity = 2,
     .since = "5.0.0",
     .summary = "Prints this help",
     .handler = debug_help},
    {.name = "stringmatch-len",
     .arity = 4,
     .since = "6.0.0",
     .summary = "Returns whether a pattern matches a string",
     .complexity = "O(N) where N is the size of the string",
     .syntax = "pattern string",
     .handler = debug_stringmatch},
    {.name = "sleep",
     .arity = 3,
     .summary = "Keeps one I/O thread from serving for a while",
     .complexity = "O(1), but it takes the time asked for",
     .syntax = "seconds:double",
     .handler = sleep},
};

const Command kDebugRows[] = {
    {.name = "debug",
     .arity = -2,
     .flags = kDebugFlags,
     .summary = "A container for what tests ask of a server",
     .subcommands = kDebugSubcommands},
};

}  // namespace

const CommandFamily kDebugCommands{
    {.flags = kDebugFlags, .group = "server", .since = "1.0.0", .complexity = "O(1)"}, kDebugRows};

}  // namespace server
