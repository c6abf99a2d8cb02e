// SPDX-License-Identifier: MIT
//
// ActiveExpiry: deletes expired keys that no command accesses.
//
// Invariants: only keys that have a due record in their ExpiryIndex are visited. At most 64 keys
// are deleted per lock, so that no command waits for long. Each call continues where the previous
// call ended, so that every database is visited.
// Thread safety: run() is called by one thread at a time; it takes stripe locks itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"

namespace core::keyspace {

struct ExpiryReport {
  size_t expired = 0;  // number of deleted keys
  bool timed_out = false;
};

class ActiveExpiry {
 public:
  ActiveExpiry(Keyspace& keyspace, const Clock& clock) : keyspace_(keyspace), clock_(clock) {}

  // Deletes expired keys until no expired key is left or `duration_us_max` has passed. The
  // keyspace's expired hook reports the deleted keys.
  ExpiryReport run(int64_t duration_us_max);

 private:
  void advance();

  Keyspace& keyspace_;
  const Clock& clock_;
  unsigned database_ = 0;
  unsigned stripe_ = 0;
};

}  // namespace core::keyspace
