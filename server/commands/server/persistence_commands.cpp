// SPDX-License-Identifier: MIT
//
// The commands of persistence: SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE and SHUTDOWN.
#include "server/base/log/log.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/durability/durability.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "server/replication/shutdown.h"
#include "server/session/awaited_reply.h"

namespace server {
namespace {

/* SAVE */
void save(Context& ctx) {
  if (auto saved = ctx.services.durability.saves.snapshots.save(ctx.locking()); !saved) {
    return ctx.reply.error(saved.error().message);
  }
  ctx.reply.ok();
}

/* BGSAVE [SCHEDULE] */
void bgsave(Context& ctx) {
  const bool may_wait =
      ctx.args.size() == 2 && protocol::equals_ignore_case(ctx.args[1], "SCHEDULE");
  if (!may_wait && ctx.args.size() > 1) return ctx.reply.error(kSyntaxError);
  SnapshotSaver& saver = ctx.services.durability.saves.snapshots;
  const auto started = ctx.in_exec ? saver.schedule() : saver.start(may_wait);
  if (!started) return ctx.reply.error(started.error().message);
  ctx.reply.simple(*started == SaveStart::kStarted ? "Background saving started"
                                                   : "Background saving scheduled");
}

/* BGREWRITEAOF */
void bgrewriteaof(Context& ctx) {
  const auto started = ctx.services.durability.request_rewrite();
  if (!started) return ctx.reply.error(started.error().message);
  // Inside EXEC, the rewrite starts after the transaction.
  ctx.reply.simple(*started == SaveStart::kStarted && !ctx.in_exec
                       ? "Background append only file rewriting started"
                       : "Background append only file rewriting scheduled");
}

/* LASTSAVE */
void lastsave(Context& ctx) {
  ctx.reply.integer(ctx.services.durability.saves.snapshots.last_save_s());
}

struct ShutdownOptions {
  bool save = false;
  bool nosave = false;
  bool now = false;
  bool force = false;
  bool abort = false;

  bool are_contradictory() const {
    return (save && nosave) || (abort && (save || nosave || now || force));
  }
};

ShutdownOptions parse_shutdown(protocol::ArgumentCursor& cursor) {
  ShutdownOptions options;
  while (!cursor.done()) {
    if (cursor.eat_keyword("nosave")) {
      options.nosave = true;
    } else if (cursor.eat_keyword("save")) {
      options.save = true;
    } else if (cursor.eat_keyword("now")) {
      options.now = true;
    } else if (cursor.eat_keyword("force")) {
      options.force = true;
    } else if (cursor.eat_keyword("abort")) {
      options.abort = true;
    } else {
      cursor.fail(kSyntaxError);
    }
  }
  if (options.are_contradictory()) cursor.fail(kSyntaxError);
  return options;
}

// FailedShutdown: the reply to SHUTDOWN if the shutdown fails. If the shutdown succeeds, the
// connection is closed without a reply.
class FailedShutdown final : public AwaitedReply {
 public:
  explicit FailedShutdown(const Shutdown& shutdown)
      : shutdown_(shutdown), attempt_(shutdown.attempt()) {}

  bool try_answer(protocol::ReplyWriter& reply, bool /*is_late*/) override {
    if (attempt_ != 0 && shutdown_.attempt() == attempt_) return false;
    reply.error("ERR Errors trying to SHUTDOWN. Check logs.");
    return true;
  }
  bool is_shown() const override { return true; }

 private:
  const Shutdown& shutdown_;
  const uint64_t attempt_;  // number of the attempt; 0 if it failed before the wait began
};

/* SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT] */
void shutdown(Context& ctx) {
  protocol::ArgumentCursor cursor(ctx.args.subspan(1));
  const ShutdownOptions options = parse_shutdown(cursor);
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  Shutdown& shutdown = ctx.services.shutdown;
  if (options.abort) {
    const auto aborted = shutdown.abort();
    return aborted ? ctx.reply.ok() : ctx.reply.error(aborted.error().message);
  }
  log_notice("User requested shutdown...");
  Shutdown::Request request;
  if (options.save) request.save = FinalSave::kRequired;
  if (options.nosave) request.save = FinalSave::kNone;
  request.is_forced = options.force;
  request.waits_for_replicas = !options.now;
  shutdown.begin(request);
  ctx.await(std::make_unique<FailedShutdown>(shutdown));
}

constexpr uint32_t kSaves = kAdmin | kNoScript | kNoAsyncLoading;

const Command kPersistenceRows[] = {
    {.name = "save",
     .arity = 1,
     .flags = kSaves | kNoMulti | kWholeKeyspace,
     .summary = "Saves a snapshot while all clients wait",
     .complexity = "O(N) where N is the size of all values",
     .handler = save},
    {.name = "bgsave",
     .arity = -1,
     .flags = kSaves,
     .summary = "Saves a snapshot in a forked process",
     .complexity = "O(1), a child saves",
     .syntax = "[SCHEDULE]",
     .handler = bgsave},
    {.name = "bgrewriteaof",
     .arity = 1,
     .flags = kSaves,
     .summary = "Rewrites the append log in a forked process",
     .handler = bgrewriteaof},
    {.name = "lastsave",
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .categories = kAdministrative | kDangerous,
     .summary = "Returns when the last snapshot was saved",
     .tips = "nondeterministic_output",
     .handler = lastsave},
    {.name = "shutdown",
     .arity = -1,
     .flags = kAdmin | kNoScript | kLoading | kStale | kNoMulti | kAllowBusy,
     .summary = "Ends the server",
     .complexity = "O(N) when saving, where N is the size of all values, else O(1)",
     .syntax = "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
     .handler = shutdown},
};

}  // namespace

const CommandFamily kPersistenceCommands{
    {.group = "server", .since = "1.0.0", .complexity = "O(1)"}, kPersistenceRows};

}  // namespace server
