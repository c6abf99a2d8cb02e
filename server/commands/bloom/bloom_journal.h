// SPDX-License-Identifier: MIT
//
// The effects of BF.* in the journal. A new filter is spelled out with all its settings, so that no
// configuration matters when it is repeated. It lists only the items that were new.
// A filter of another server's layout is made in words of that server. redisbloom: BF.LOADCHUNK
// with the header. valkey-bloom: BF.INSERT with TIGHTENING and SEED.
//
// Invariants: every listed item counted when it was added, so replay need not look (see
// ScalableFilter::replay_add).
// Thread safety: as Context. REQUIRES everywhere: the key's exclusive lock.
// Source: docs/formats.md, "Append log".
#pragma once

#include <span>

#include "core/bloom/scalable_filter.h"
#include "server/dispatch/context.h"

namespace server {

void journal_reserved(const Context& ctx, const KeyRef& key,
                      const core::bloom::ScalableFilter& filter);

// `outcomes` may be shorter than `items`: those were not tried.
void journal_added(const Context& ctx, const KeyRef& key, const core::bloom::ScalableFilter& filter,
                   bool is_new, Arguments items, std::span<const core::bloom::AddOutcome> outcomes);

// `filter` is the empty one.
void journal_cleared(const Context& ctx, const KeyRef& key,
                     const core::bloom::ScalableFilter& filter);

// To be called before a command of this server alone is journalled for the filter. Where another
// server holds such a filter too, its replicas miss the command and need a new snapshot.
void announce_own_words(const Context& ctx, const core::bloom::ScalableFilter& filter);

// To be called before COPY is journalled: RedisBloom cannot copy a filter.
void announce_copy(const Context& ctx, const core::bloom::ScalableFilter& filter);

// Items that were there but stay changed nothing.
void journal_deleted(const Context& ctx, const KeyRef& key, Arguments items,
                     std::span<const core::bloom::Removal> removals);

}  // namespace server
