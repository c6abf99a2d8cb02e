// SPDX-License-Identifier: MIT
//
// ActiveExpiry: deletes expired keys that nobody asks for, a bounded amount per tick.
//
// Invariants: at most a few buckets are looked at per lock, so a tick delays no command for long;
// the cursor rotates over all stripes and databases, so every key gets its turn.
// Thread safety: tick() is called by one thread at a time; it takes stripe locks itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/expiry_statistics.h"
#include "core/keyspace/keyspace.h"

namespace core::keyspace {

// What one tick may spend; it ends at whichever limit comes first.
struct ExpiryBudget {
  size_t entries_max = 4096;
  int64_t duration_us_max = 1000;
};

struct ExpiryReport {
  size_t looked_at = 0;    // entries seen
  size_t expiring = 0;     // of these, entries with an expiry
  size_t expired = 0;      // of these, deleted
  bool exhausted = false;  // a limit ended the tick before the whole keyspace was seen
  bool timed_out = false;  // that limit was the time
};

class ActiveExpiry {
 public:
  ActiveExpiry(Keyspace& keyspace, const Clock& clock) : keyspace_(keyspace), clock_(clock) {}

  // Deleted keys are reported through the keyspace's expired hook, figures through its
  // statistics.
  ExpiryReport tick(const ExpiryBudget& budget);

 private:
  void expire_bite(int64_t now_ms, ExpiryReport& report);
  void advance();
  // Hands over what was seen of the current database.
  void publish_ttl();

  Keyspace& keyspace_;
  const Clock& clock_;
  unsigned database_ = 0;
  unsigned stripe_ = 0;
  uint64_t cursor_ = 0;
  TtlSample ttl_;                     // of the current database, in this tick
  std::vector<const Entry*> doomed_;  // found in one bite; a member to keep its memory
};

}  // namespace core::keyspace
