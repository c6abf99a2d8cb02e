// SPDX-License-Identifier: MIT
#include "server/dispatch/own_keys.h"

#include "core/keyspace/slot_keys.h"
#include "server/cluster/view.h"
#include "server/dispatch/context.h"
#include "server/dispatch/key_routing.h"

namespace server {

OwnKeys::OwnKeys(const Context& ctx) : ctx_(ctx) {
  // Commands from a journal see all keys of the database.
  if (!has_one_database(ctx)) return;
  const cluster::View& view = view_of(ctx);
  if (!view.owns_all()) view_ = &view;
}

bool OwnKeys::is_owned(std::string_view key) const {
  return view_->owns(core::keyspace::slot_of(key));
}

uint64_t OwnKeys::count() const {
  if (shows_all()) return ctx_.keyspace().db_size(ctx_.database());
  uint64_t sum = 0;
  if (view_->own_shard() == nullptr) return sum;
  for (const cluster::SlotRange& range : view_->own_shard()->slots) {
    for (unsigned slot = range.first; slot <= range.last; ++slot) {
      sum += ctx_.keyspace().slot_sizes()->at(slot);
    }
  }
  return sum;
}

}  // namespace server
