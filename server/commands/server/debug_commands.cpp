// SPDX-License-Identifier: MIT
//
// DEBUG: what tests ask of a server. Behind the option enable-debug-command.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/number.h"
#include "server/commands/server/digest.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/families.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/durability.h"
#include "server/durability/loading/data_loader.h"
#include "server/session/clients.h"
#include "server/session/deferred_reply.h"

namespace server {
namespace {

constexpr std::string_view kNotAllowed =
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you "
    "can "
    "run it from a local connection, otherwise you need to set this option in the configuration "
    "file, and then restart the server.";

// Answers when it is not.
bool is_allowed(Context& ctx) {
  const DebugCommand allowed = ctx.services.config.debug_command();
  const Session& session = ctx.session;
  const bool is_local = session.is_unix_socket || session.address.starts_with("127.") ||
                        session.address.starts_with("[::1]") || session.address.starts_with("::1");
  if (allowed == DebugCommand::kYes || (allowed == DebugCommand::kLocal && is_local)) return true;
  ctx.reply.error(kNotAllowed);
  return false;
}

/* DEBUG DIGEST */
void digest(Context& ctx) {
  if (!is_allowed(ctx)) return;
  const auto lock = ctx.lock_everything();
  ctx.reply.simple(to_text(keyspace_digest(ctx.keyspace())));
}

/* DEBUG DIGEST-VALUE key [key ...] */
void digest_value(Context& ctx) {
  if (!is_allowed(ctx)) return;
  const auto lock = ctx.lock_everything();
  ctx.reply.array(ctx.args.size() - 2);
  for (size_t i = 2; i < ctx.args.size(); ++i) {
    const Entry* entry = ctx.keyspace().find(ctx.database(), ctx.key(i), ctx.expiry_now_ms);
    ctx.reply.simple(entry == nullptr ? std::string(40, '0') : to_text(value_digest(*entry)));
  }
}

// Holds writes back and loads all keys anew once no command is under way; answers when it is done.
template <class Load>
void reload_when_drained(Context& ctx, Load load) {
  Durability& durability = ctx.services.durability;
  if (auto begun = durability.loader().begin_reload(); !begun) {
    return ctx.reply.error(begun.error().message);
  }
  PauseGate& pause = ctx.services.pause;
  pause.hold_writes(PauseGate::Hold::kReload);
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.session.id);
  pause.drain([&durability, &pause, load, end = reply.end] {
    const auto done = load(durability);
    durability.loader().end_reload([&pause] { pause.release_writes(PauseGate::Hold::kReload); });
    end(done);
  });
  ctx.await(std::move(reply.awaited));
}

/* DEBUG RELOAD [NOSAVE] */
void reload(Context& ctx) {
  if (!is_allowed(ctx)) return;
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
  if (!is_allowed(ctx)) return;
  reload_when_drained(ctx, [](Durability& durability) { return durability.loader().reload_log(); });
}

/* DEBUG SLEEP seconds */
void sleep(Context& ctx) {
  if (!is_allowed(ctx)) return;
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
     .group = "server",
     .since = "1.0.0",
     .summary = "Tells a digest of all keys",
     .complexity = "O(N) where N is the size of all values",
     .handler = digest},
    {.name = "digest-value",
     .arity = -3,
     .flags = kDebugFlags | kWholeKeyspace,
     .group = "server",
     .since = "1.0.0",
     .summary = "Tells digests of values",
     .complexity = "O(N) where N is the size of the values named",
     .syntax = "key ...",
     .handler = digest_value},
    {.name = "reload",
     .arity = -2,
     .flags = kDebugFlags | kNoMulti,
     .group = "server",
     .since = "1.0.0",
     .summary = "Saves a snapshot, forgets all keys and loads it",
     .complexity = "O(N) where N is the size of all values",
     .syntax = "[NOSAVE]",
     .handler = reload},
    {.name = "loadaof",
     .arity = 2,
     .flags = kDebugFlags | kNoMulti,
     .group = "server",
     .since = "1.0.0",
     .summary = "Forgets all keys and loads the append log",
     .complexity = "O(N) where N is the size of the append log",
     .handler = loadaof},
    {.name = "sleep",
     .arity = 3,
     .flags = kDebugFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "Keeps one I/O thread from serving for a while",
     .complexity = "O(1), but it takes the time asked for",
     .syntax = "seconds:double",
     .handler = sleep},
};

const Command kDebugRows[] = {
    {.name = "debug",
     .arity = -2,
     .flags = kDebugFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "A container for what tests ask of a server",
     .complexity = "Depends on subcommand",
     .subcommands = kDebugSubcommands},
};

}  // namespace

std::span<const Command> debug_commands() {
  return kDebugRows;
}

}  // namespace server
