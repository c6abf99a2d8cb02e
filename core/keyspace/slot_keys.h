// SPDX-License-Identifier: MIT
//
// The number and the list of keys per slot, in a keyspace whose keys are placed by slot.
//
// Invariants: the keys of a slot are in one stripe.
// Thread safety: for_each_in_slot() takes that stripe's lock, shared, unless the caller holds it.
// Source: docs/architecture.md, "Concurrency".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/slot.h"

namespace core::keyspace {

// The number of keys in each slot.
//
// Invariants: exact for a slot whenever its stripe is unlocked.
// Thread safety: count() and reset() need the slot's stripe, exclusive; at() may be called from any
// thread.
class SlotSizes {
 public:
  uint64_t at(unsigned slot) const { return sizes_[slot].load(std::memory_order_relaxed); }
  // Records that a key was inserted (1) or removed (-1).
  void count(unsigned slot, int64_t delta) {
    auto& size = sizes_[slot];
    // Only one thread writes at a time; the atomic allows concurrent reads.
    size.store(size.load(std::memory_order_relaxed) + static_cast<uint32_t>(delta),
               std::memory_order_relaxed);
  }
  void reset() {
    for (auto& size : sizes_) size.store(0, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint32_t>, kSlotCount> sizes_{};
};

// Calls visit(const Entry&) for the keys of the slot in database 0, expired ones included, until it
// returns false. The visitor may only read and collect. REQUIRES: keyspace.place_by_slot().
template <class Visit>
void for_each_in_slot(Keyspace& keyspace, unsigned slot, Locking locking, Visit&& visit) {
  const unsigned index = stripe_of_slot(slot);
  const bool take = locking == Locking::kTake;
  const StripeLock guard = keyspace.lock(take ? StripeMask{1} << index : 0, LockMode::kShared);
  const Table* const table = keyspace.database_of_stripe(index, 0).table.get();
  uint64_t left = table == nullptr ? 0 : keyspace.slot_sizes()->at(slot);
  uint64_t cursor = 0;
  // The table cannot change under the lock, so one round of the cursor visits each entry once.
  while (left > 0) {
    cursor = table->scan(cursor, [&](const Entry& entry) {
      if (left == 0 || slot_of(entry.key()) != slot) return;
      left = visit(entry) ? left - 1 : 0;
    });
    if (cursor == 0) return;
  }
}

}  // namespace core::keyspace
