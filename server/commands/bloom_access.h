// SPDX-License-Identifier: MIT
//
// How BF.* commands reach the filter of a key.
//
// Thread safety: as Context.
#pragma once

#include <optional>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "server/commands/context.h"

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

}  // namespace server
