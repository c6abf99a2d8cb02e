// SPDX-License-Identifier: MIT
//
// Commits the changes of BF.* commands: the keyspace events and the effects in the journal. A new
// filter is journalled with all its settings, so that replay does not depend on the configuration.
// Only items that changed the filter are listed. The journal creates a filter in another server's
// layout by a command of that server. For RedisBloom this command is BF.LOADCHUNK with the header,
// for valkey-bloom BF.INSERT with TIGHTENING and SEED.
//
// Invariants: every listed item increased the filter's item count when it was added, so replay need
// not look the item up (see ScalableFilter::add_new).
// Thread safety: the thread that runs the command calls the functions, and must hold the key's
// exclusive lock.
// Source: docs/formats.md, "Append log".
#pragma once

#include <span>

#include "core/bloom/scalable_filter.h"
#include "server/dispatch/context.h"

namespace server {

// Commits a new filter without items.
void commit_reserved(Context& ctx, const KeyRef& key, const core::bloom::ScalableFilter& filter);

// commit_made() and journal_added() are the parts of commit_added().
void commit_made(Context& ctx, const KeyRef& key, const core::bloom::ScalableFilter& filter,
                 Arguments items, std::span<const core::bloom::AddOutcome> outcomes);
void journal_added(Context& ctx, const KeyRef& key, Arguments items,
                   std::span<const core::bloom::AddOutcome> outcomes);

// Commits added items, and the filter itself if it is new. `outcomes` may be shorter than `items`:
// items without an outcome were not tried. REQUIRES: the filter is new, or an outcome has an
// effect.
inline void commit_added(Context& ctx, const KeyRef& key, const core::bloom::ScalableFilter& filter,
                         bool is_new, Arguments items,
                         std::span<const core::bloom::AddOutcome> outcomes) {
  if (is_new) [[unlikely]]
    return commit_made(ctx, key, filter, items, outcomes);
  ctx.mark_changed(ctx.database(), key, KeyEvent::kBloomAdd);
  if (ctx.is_journal_active()) journal_added(ctx, key, items, outcomes);
}

// Commits BF.CLEAR. `filter` is the empty filter that replaces the old one.
void commit_cleared(Context& ctx, const KeyRef& key, const core::bloom::ScalableFilter& filter);

// Must be called before the journal gets a command that only Bloomery can execute on this filter.
// If the filter has the layout of RedisBloom or valkey-bloom, the leader then disconnects the
// replicas that run these servers. Such replicas cannot apply the command and need a new snapshot.
void announce_own_words(const Context& ctx, const core::bloom::ScalableFilter& filter);

// Must be called before COPY is journalled. RedisBloom cannot copy a filter, so if the filter has
// the layout of RedisBloom, the leader then disconnects its foreign replicas.
void announce_copy(const Context& ctx, const core::bloom::ScalableFilter& filter);

// Commits deleted items. An item that is present but cannot be deleted leaves the filter
// unchanged, so it is not journalled. REQUIRES: at least one item was deleted.
void commit_deleted(Context& ctx, const KeyRef& key, Arguments items,
                    std::span<const core::bloom::Removal> removals);

}  // namespace server
