// SPDX-License-Identifier: MIT
//
// How BF.* commands reach the filter of a key.
//
// Thread safety: as Context.
#pragma once

#include <optional>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "server/dispatch/context.h"

namespace server {

inline constexpr std::string_view kFilterNotFound = "ERR not found";

// The filter, or null when the key is missing; nothing when it holds a string, which is answered.
// REQUIRES: the key's lock.
inline std::optional<core::bloom::ScalableFilter*> find_filter(Context& ctx, const KeyRef& key) {
  Entry* entry = ctx.find(key);
  if (entry == nullptr) return nullptr;
  if (entry->is_filter()) return &entry->filter();
  ctx.reply.error(kWrongType);
  return std::nullopt;
}

// As find_filter, for the lookups that answer "no" for keys that hold something else.
inline const core::bloom::ScalableFilter* find_filter_or_nothing(Context& ctx, const KeyRef& key) {
  const Entry* entry = ctx.find(key);
  return entry != nullptr && entry->is_filter() ? &entry->filter() : nullptr;
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
