// SPDX-License-Identifier: MIT
//
// Implements windows: the time that lookups use, the rotations before adds, and the command
// BF.TURN, which only journals contain.
#include <limits>
#include <utility>

#include "core/bloom/window.h"
#include "core/clock.h"
#include "core/keyspace/reclaimer.h"
#include "core/keyspace/window_schedule.h"
#include "persistence/window_rotations.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {

using core::bloom::ScalableFilter;
using protocol::ArgumentCursor;

int64_t leader_time_ms(const Context& ctx) {
  const bool leads =
      ctx.session.origin == CommandOrigin::kClient && !ctx.environment.state.is_replica;
  // The clock is read for each command. The start time of the command's batch is not used. It is
  // earlier than the add, so the window could drop the added item too early.
  return leads ? ctx.environment.clock.wall_ms() : core::bloom::kNoTime;
}

bool window_refreshes(const ScalableFilter& filter) {
  return filter.window()->settings().refreshes;
}

bool rotate_before_add(Context& ctx, const KeyRef& key, ScalableFilter& filter) {
  if (filter.window()->settings().counts_items()) return true;
  const int64_t now_ms = leader_time_ms(ctx);
  const uint64_t newest = filter.window()->newest().ordinal;
  if (now_ms != core::bloom::kNoTime &&
      !persistence::rotate_by_clock(ctx.environment.journal, {ctx.database(), key.name}, filter,
                                    now_ms, ctx.admission().memory())) {
    ctx.reply.error(ctx.admission().memory_refusal());
    return false;
  }
  if (filter.window()->newest().ordinal != newest) {
    commit_journalled(ctx, key, KeyEvent::kBloomRotation);
  }
  // The filter is empty, so its key may be missing in the schedule of rotations. The add that
  // follows gives it items, so the key is recorded there.
  if (!persistence::has_rotations(filter)) {
    core::keyspace::WindowSchedule::of_process().record(key.name);
  }
  return true;
}

void free_dropped(const Context& ctx, ScalableFilter& filter) {
  auto dropped = filter.take_dropped();
  if (dropped == nullptr) return;
  EntryPtr entry = Entry::create({});
  entry->set_filter(std::move(dropped));
  ctx.environment.reclaimer.drop(std::move(entry));
}

namespace {

/* BF.TURN key ordinal start-milliseconds */
void rotate(Context& ctx) {
  if (ctx.session.origin != CommandOrigin::kOwnJournal) {
    return ctx.reply.error("ERR BF.TURN is for journals of this server only");
  }
  ArgumentCursor cursor(ctx.args.subspan(2));
  const int64_t ordinal = cursor.take_int64_between(0, std::numeric_limits<int64_t>::max());
  const int64_t start_ms = cursor.take_int64();
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  ScalableFilter* const filter = *found;
  if (filter == nullptr || filter->window() == nullptr) {
    return ctx.reply.error("ERR no filter with a window");
  }
  const uint64_t newest = filter->window()->newest().ordinal;
  if (!filter->rotate({static_cast<uint64_t>(ordinal), start_ms}, ctx.admission().memory())) {
    return ctx.reply.error("ERR the window cannot turn");
  }
  free_dropped(ctx, *filter);
  journal_command(ctx);
  if (filter->window()->newest().ordinal != newest) {
    commit_journalled(ctx, key, KeyEvent::kBloomRotation);
  }
  ctx.reply.ok();
}

const Command kBloomWindowRows[] = {
    {.name = "bf.turn",
     .arity = 4,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyUpdate),
     .categories = kBloom,
     .group = "bloom-ext",
     .since = "1.0.0",
     .summary = "Begins a generation of a filter with a window; only journals hold it",
     .complexity = "O(L) where L is the number of layers; another thread frees the dropped ones",
     .syntax = "key ordinal start:unix-time",
     .handler = rotate,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kBloomWindowCommands{{}, kBloomWindowRows};

}  // namespace server
