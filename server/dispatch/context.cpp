// SPDX-License-Identifier: MIT
#include "server/dispatch/context.h"

namespace server {

StripeLock Context::lock_keys() const {
  if (in_exec) return {};
  StripeMask mask = 0;
  for_each_key(*command->row, args, [&](size_t index, uint16_t) {
    mask |= core::keyspace::Keyspace::mask_of(key(index));
  });
  return environment.keyspace.lock(mask, lock_mode());
}

}  // namespace server
