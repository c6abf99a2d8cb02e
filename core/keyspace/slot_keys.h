// SPDX-License-Identifier: MIT
//
// The number and the list of keys per slot, in a keyspace whose keys are placed by slot.
//
// Invariants: the keys of a slot are in one stripe.
// Thread safety: for_each_in_slot() takes that stripe's lock, shared, unless the caller holds it.
// It holds the lock for a bounded number of buckets at a time.
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
// returns false. The visitor may only read and collect. Unless the caller holds the lock, it is
// released after each kSlotScanStep buckets. Then a key that is there all the time is visited at
// least once, as by SCAN. REQUIRES: keyspace.place_by_slot().
inline constexpr unsigned kSlotScanStep = 512;
template <class Visit>
void for_each_in_slot(Keyspace& keyspace, unsigned slot, Locking locking, Visit&& visit) {
  const unsigned index = stripe_of_slot(slot);
  const StripeMask mask = locking == Locking::kTake ? StripeMask{1} << index : 0;
  uint64_t cursor = 0;
  bool wants_more = true;
  do {
    const StripeLock guard = keyspace.lock(mask, LockMode::kShared);
    const Table* const table = keyspace.database_of_stripe(index, 0).table.get();
    if (table == nullptr || keyspace.slot_sizes()->at(slot) == 0) return;
    for (unsigned step = 0; step < kSlotScanStep; ++step) {
      cursor = table->scan(cursor, [&](const Entry& entry) {
        if (wants_more && slot_of(entry.key()) == slot) wants_more = visit(entry);
      });
      if (cursor == 0 || !wants_more) return;
    }
  } while (true);
}

}  // namespace core::keyspace
