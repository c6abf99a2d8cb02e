// SPDX-License-Identifier: MIT
//
// Helpers by which the BF.* commands find and change the filter of a key.
//
// Thread safety: only the thread that runs the command may call the functions.
#pragma once

#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "server/dispatch/context.h"

namespace server {

inline constexpr std::string_view kFilterNotFound = "ERR not found";

// Returns the filter of the key. If the key holds another type, replies with the error. REQUIRES:
// the key's lock.
inline Found<core::bloom::ScalableFilter> find_filter(Context& ctx, const KeyRef& key) {
  Entry* entry = ctx.find(key);
  if (entry == nullptr) return nullptr;
  if (entry->is_filter()) return &entry->filter();
  ctx.reply.error(kWrongType);
  return Found<core::bloom::ScalableFilter>::other_kind();
}

// Returns the filter of the key; null if the key is missing or holds another type. Used by lookups
// that answer "no" in both cases. REQUIRES: the key's lock is held.
inline const core::bloom::ScalableFilter* find_filter_or_nothing(Context& ctx, const KeyRef& key) {
  const Entry* entry = ctx.find(key);
  return entry != nullptr && entry->is_filter() ? &entry->filter() : nullptr;
}

struct FilterRequest;

// Handles a BF.INSERT from a log or stream of valkey-bloom. If a client sends BF.LOAD, valkey-bloom
// journals a BF.INSERT whose only item is the payload. Returns true if `request` is such a
// BF.INSERT and its filter now exists. The settings in the payload must equal those in the
// BF.INSERT. Defined in bloom_chunk_commands.cpp.
bool load_journalled_as_insert(Context& ctx, const FilterRequest& request);

// leader_time_ms(), window_refreshes(), rotate_before_add() and free_dropped() are defined in
// bloom_windows.cpp.
int64_t leader_time_ms(const Context& ctx);
bool window_refreshes(const core::bloom::ScalableFilter& filter);
bool rotate_before_add(Context& ctx, const KeyRef& key, core::bloom::ScalableFilter& filter);
// Passes layers dropped by window rotations and deletions to the reclaimer.
void free_dropped(const Context& ctx, core::bloom::ScalableFilter& filter);

// Returns the time to pass to lookups of this filter, or kNoTime for a filter without a window.
// With this time, lookups on a leader ignore expired generations.
inline int64_t window_time(const Context& ctx, const core::bloom::ScalableFilter& filter) {
  return filter.window() == nullptr ? core::bloom::kNoTime : leader_time_ms(ctx);
}

// Returns whether adding an item that is already present can change the filter.
inline bool is_refreshing(const core::bloom::ScalableFilter& filter) {
  return filter.window() != nullptr && window_refreshes(filter);
}

// Rotates the window of an existing filter, if it has one. Must be called before items are added.
// If memory is short, replies with the error and returns false. REQUIRES: the key's exclusive lock.
inline bool prepare_add(Context& ctx, const KeyRef& key, core::bloom::ScalableFilter& filter) {
  return filter.window() == nullptr || rotate_before_add(ctx, key, filter);
}

// Frees the layers that rotations have dropped. Must be called after items were added. REQUIRES:
// the key's exclusive lock.
inline void finish_add(const Context& ctx, core::bloom::ScalableFilter& filter) {
  if (filter.window() != nullptr) free_dropped(ctx, filter);
}

// Returns whether lookups reply null, not 0, if the key is missing (bf-exists-missing-key).
inline bool may_answer_nil(const Context& ctx) {
  return ctx.config().integer(OptionId::kBloomExistsMissingKey) == 1;
}

// Called after find_filter_or_nothing() found no filter. Returns true if lookups must answer null
// for each item, because the key is missing and the configuration asks for null. Otherwise lookups
// answer 0. REQUIRES: the key's lock.
inline bool answers_nil(const Context& ctx, const KeyRef& key) {
  return may_answer_nil(ctx) &&
         ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms) == nullptr;
}

inline void reply_nothing_found(Context& ctx, bool is_nil) {
  is_nil ? ctx.reply.null() : ctx.reply.boolean(false);
}

// Must be called by a command that reads one filter to create or change another, and that is
// journalled verbatim. A child process that is saving then sees `filter` exactly as the command
// reads it. So the command has the same result when it is replayed on top of the child's snapshot.
// Returns false if memory is short. REQUIRES: the key's exclusive lock. Source: docs/formats.md,
// "Snapshots".
inline bool detach_source(const Context& ctx, core::bloom::ScalableFilter& filter) {
  return !ctx.may_have_child() || filter.detach_from_children();
}

}  // namespace server
