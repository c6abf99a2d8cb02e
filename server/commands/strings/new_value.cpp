// SPDX-License-Identifier: MIT
#include "server/commands/strings/new_value.h"

#include <utility>

#include "core/keyspace/reclaimer.h"
#include "server/dispatch/admission.h"

namespace server {

bool NewValue::copy(const Context& ctx) {
  return ctx.admission().memory_suffices(text_.size()) && bytes_.assign(text_);
}

inline bool NewValue::give_to(Entry& entry) {
  if (bytes_.size() == 0) return entry.set_string(text_);
  entry.set_raw(std::move(bytes_));
  return true;
}

Entry* NewValue::store(Context& ctx, const KeyRef& key, Entry* entry) {
  if (entry != nullptr && entry->is_heavy()) return replace(ctx, key, *entry);
  Entry& stored = entry != nullptr ? *entry : ctx.insert(key);
  if (give_to(stored)) return &stored;
  if (entry == nullptr) {
    ctx.environment.reclaimer.drop(ctx.keyspace().erase(ctx.database(), key));
  }
  return nullptr;
}

// Stores the new value in a new entry. The reclaimer frees the old entry in the background, because
// it takes long to free a big value.
Entry* NewValue::replace(Context& ctx, const KeyRef& key, const Entry& old) {
  EntryPtr fresh = Entry::create(key.name);
  if (!give_to(*fresh)) return nullptr;
  fresh->set_expires_at_ms(old.expires_at_ms());
  fresh->set_use_bits(old.use_bits());
  Entry* const stored = fresh.get();
  ctx.environment.reclaimer.drop(ctx.keyspace().put(ctx.database(), key, std::move(fresh)));
  return stored;
}

}  // namespace server
