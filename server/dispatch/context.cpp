// SPDX-License-Identifier: MIT
#include "server/dispatch/context.h"

#include "server/dispatch/own_changes.h"

namespace server {

StripeLock Context::lock_keys() const {
  if (in_exec) return {};
  StripeMask mask = 0;
  for_each_key(*command->row, args, [&](size_t index, uint16_t) {
    mask |= core::keyspace::Keyspace::mask_of(key(index));
  });
  return environment.keyspace.lock(mask, lock_mode());
}

void Context::await(std::unique_ptr<AwaitedReply> awaited) {
  if (!awaited->try_answer(reply, in_exec)) session.awaited = std::move(awaited);
}

void Context::note_own_key(unsigned in_database, std::string_view name) const {
  environment.own_changes.note_own_key(in_database, name);
}

void Context::note_own_change() const {
  environment.own_changes.note_own_change();
}

}  // namespace server
