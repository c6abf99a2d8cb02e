// SPDX-License-Identifier: MIT
//
// What the journal holds of BF.*: effects. A filter that is made is spelled out with all its
// settings, so that no configuration matters when it is repeated, and of the items given only those
// are listed that were new.
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

// Items that were there but stay changed nothing.
void journal_deleted(const Context& ctx, const KeyRef& key, Arguments items,
                     std::span<const core::bloom::Removal> removals);

}  // namespace server
