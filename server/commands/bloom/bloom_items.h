// SPDX-License-Identifier: MIT
//
// Helpers for BF.* commands with items. They create the filter for an add to a missing key, add
// items, and reply. Includes item_batch.h.
//
// Thread safety: the thread that runs the command calls the functions.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "core/bloom/parameters.h"
#include "core/bloom/scalable_filter.h"
#include "core/clock.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/bloom/item_batch.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {

inline constexpr std::string_view kFilterFull = "ERR non scaling filter is full";

// The flags of commands that add items.
inline constexpr uint32_t kAdds = kWrite | kDenyOom;
inline constexpr uint32_t kLooks = kReadOnly | kFast;
inline constexpr auto kAddKey = one_key(kKeyRw | kKeyAccess | kKeyUpdate);
inline constexpr auto kLookKey = one_key(kKeyRo | kKeyAccess);

// Creates a filter. If that is impossible, replies with the error and returns null. An expiry in
// the past is stored like any other, as SET does. REQUIRES: the key is absent and locked.
inline core::bloom::ScalableFilter* make_filter(Context& ctx, const KeyRef& key,
                                                const FilterRequest& request) {
  // The clock is read here, because ctx.now_ms is the start of EXEC. A window that begins before
  // the filter exists would drop the first items too early.
  const int64_t start_ms = request.window_start_ms.value_or(ctx.environment.clock.wall_ms());
  auto filter = create_filter(ctx.admission(), request.parameters, start_ms);
  if (!filter) {
    ctx.reply.error(filter.error().message);
    return nullptr;
  }
  Entry& entry = ctx.insert(key);
  entry.set_filter(std::move(*filter));
  if (request.expires_at_ms != core::keyspace::kNoExpiry) {
    ctx.keyspace().set_expiry(ctx.database(), key, entry, request.expires_at_ms);
  }
  return &entry.filter();
}

// Creates a filter with the default settings, as make_filter() does, for adding to a missing key.
// Defined in bloom_commands.cpp.
core::bloom::ScalableFilter* make_default_filter(Context& ctx, const KeyRef& key);

// Adds the items that the batch has hashed. Stops at the first item that does not fit. Returns one
// outcome for each item that was tried. `known` is as in ScalableFilter::add_many(). REQUIRES: the
// key's exclusive lock.
inline std::span<const core::bloom::AddOutcome> add_batch(const Context& ctx,
                                                          core::bloom::ScalableFilter& filter,
                                                          ItemBatch& batch,
                                                          const FilterBudget& budget,
                                                          std::span<const bool> known = {}) {
  const auto outcomes = batch.outcomes();
  // The journal of this server lists only items that changed the filter. So replay counts each item
  // as added, even if the loaded data have all bits of the item.
  if (ctx.session.origin == CommandOrigin::kOwnJournal) {
    filter.replay_many(batch.hashes(), outcomes, budget);
    return outcomes;
  }
  return outcomes.first(filter.add_many(batch.hashes(), outcomes, budget, known));
}

// Replies with the outcome of an add. `budget` is the memory budget that the item was added with.
inline void reply_outcome(Context& ctx, core::bloom::AddOutcome outcome,
                          const FilterBudget& budget) {
  using core::bloom::AddOutcome;
  const bool is_added = outcome == AddOutcome::kAdded;
  if (is_added || outcome == AddOutcome::kPresent || outcome == AddOutcome::kRefreshed) {
    return ctx.reply.boolean(is_added);
  }
  ctx.reply.error(outcome == AddOutcome::kFull ? kFilterFull : budget.refusal());
}

}  // namespace server
