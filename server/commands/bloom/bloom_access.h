// SPDX-License-Identifier: MIT
//
// How BF.* commands reach the filter of a key.
//
// Thread safety: as Context.
#pragma once

#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "server/dispatch/context.h"

namespace server {

inline constexpr std::string_view kFilterNotFound = "ERR not found";

// The filter; what is of another kind has been answered. REQUIRES: the key's lock.
inline Found<core::bloom::ScalableFilter> find_filter(Context& ctx, const KeyRef& key) {
  Entry* entry = ctx.find(key);
  if (entry == nullptr) return nullptr;
  if (entry->is_filter()) return &entry->filter();
  ctx.reply.error(kWrongType);
  return Found<core::bloom::ScalableFilter>::other_kind();
}

// As find_filter, for the lookups that answer "no" for keys that hold something else.
inline const core::bloom::ScalableFilter* find_filter_or_nothing(Context& ctx, const KeyRef& key) {
  const Entry* entry = ctx.find(key);
  return entry != nullptr && entry->is_filter() ? &entry->filter() : nullptr;
}

struct FilterRequest;

// In bloom_chunk_commands.cpp.
// valkey-bloom journals a client's BF.LOAD as an insertion whose one item is the whole payload:
// true when this was one, and the filter it means is there. The payload's own settings prove it.
bool load_journalled_as_insert(Context& ctx, const FilterRequest& request);

// In bloom_windows.cpp.
int64_t leader_time_ms(const Context& ctx);
bool window_refreshes(const core::bloom::ScalableFilter& filter);
bool turn_before_add(Context& ctx, const KeyRef& key, core::bloom::ScalableFilter& filter);
// Hands layers that turns and deletions have dropped to the reclaimer.
void free_dropped(const Context& ctx, core::bloom::ScalableFilter& filter);

// What lookups of this filter are to be given: what is over by now is not found on a leader.
inline int64_t window_time(const Context& ctx, const core::bloom::ScalableFilter& filter) {
  return filter.window() == nullptr ? core::bloom::kNoTime : leader_time_ms(ctx);
}

// Whether an add of what is there may change the filter.
inline bool is_refreshing(const core::bloom::ScalableFilter& filter) {
  return filter.window() != nullptr && window_refreshes(filter);
}

// To be called before items are added to a filter that was there. False when memory lacks, which
// is answered. REQUIRES: the key's exclusive lock.
inline bool prepare_add(Context& ctx, const KeyRef& key, core::bloom::ScalableFilter& filter) {
  return filter.window() == nullptr || turn_before_add(ctx, key, filter);
}

// As ctx.changed(), when items were added to a filter, or it was made, or both. REQUIRES: the key's
// exclusive lock.
inline void tell_added(Context& ctx, const KeyRef& key, bool is_new, bool any_added) {
  ctx.changed(key, any_added ? KeyEvent::kBloomAdd : KeyEvent::kBloomReserve);
  // In valkey-bloom's order.
  if (is_new && any_added) ctx.tell(KeyEvent::kBloomReserve, ctx.database(), key);
}

// To be called when items have been added. REQUIRES: the same.
inline void finish_add(const Context& ctx, core::bloom::ScalableFilter& filter) {
  if (filter.window() != nullptr) free_dropped(ctx, filter);
}

// Whether a missing filter is told from a missing item.
inline bool may_answer_nil(const Context& ctx) {
  return ctx.config().integer(OptionId::kBloomExistsMissingKey) == 1;
}

// What lookups answer for each item where find_filter_or_nothing() found nothing: null when the
// configuration wants it and the key is missing, else 0. REQUIRES: the key's lock.
inline bool answers_nil(const Context& ctx, const KeyRef& key) {
  return may_answer_nil(ctx) &&
         ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms) == nullptr;
}

inline void reply_nothing_found(Context& ctx, bool is_nil) {
  is_nil ? ctx.reply.null() : ctx.reply.boolean(false);
}

// To be called by a command that reads one filter to make or change another and is journalled as it
// came: what a child that saves sees of `filter` is from now on what the command reads, so that it
// finds the same when it is repeated from the child's snapshot. False when memory does not suffice.
// REQUIRES: the key's exclusive lock. Source: docs/formats.md, "What snapshots hold of big
// filters".
inline bool detach_source(const Context& ctx, core::bloom::ScalableFilter& filter) {
  return !ctx.may_have_child() || filter.detach_from_children();
}

}  // namespace server
