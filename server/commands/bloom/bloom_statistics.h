// SPDX-License-Identifier: MIT
//
// BloomTotals: sums over all filters of a keyspace, for INFO.
//
// Thread safety: bloom_totals() may run concurrently with all commands. Outside EXEC it locks one
// stripe after another, so the sums may mix the states of different times.
#pragma once

#include <cstdint>

#include "core/keyspace/keyspace.h"

namespace server {

struct BloomTotals {
  uint64_t object_count = 0;
  uint64_t layer_count = 0;
  uint64_t item_count = 0;
  uint64_t capacity = 0;
  uint64_t memory_bytes = 0;  // memory of all filters, as the Size of BF.INFO counts it
  bool operator==(const BloomTotals&) const = default;
};

// Sums the filters of every database, in time proportional to the number of keys. With
// Locking::kTake the function locks one stripe at a time, so the caller must hold no lock. kHeld is
// for EXEC, which holds all locks.
BloomTotals bloom_totals(core::keyspace::Keyspace& keyspace,
                         core::keyspace::Locking locking = core::keyspace::Locking::kTake);

}  // namespace server
