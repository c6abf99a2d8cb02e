// SPDX-License-Identifier: MIT
//
// The number and the list of keys per slot, in a keyspace whose keys are placed by slot.
//
// Invariants: the keys of a slot are in one stripe.
// Thread safety: for_each_in_slot() needs the lock of the slot's stripe, at least shared. If the
// caller does not hold the lock, the function takes it for a bounded number of buckets at a time.
// Source: docs/architecture.md, "Concurrency".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_set>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/slot.h"

namespace core::keyspace {

// The number of keys in each slot.
//
// Invariants: the number of a slot's keys is exact whenever the slot's stripe is unlocked.
// Thread safety: count() needs the exclusive lock of the slot's stripe, and reset() those of all
// stripes. at() and changes() may be called from any thread.
class SlotSizes {
 public:
  uint64_t at(unsigned slot) const { return slots_[slot].size.load(std::memory_order_relaxed); }
  // A counter that grows with each insertion or removal of a key of the slot, and with reset(). It
  // wraps.
  uint32_t changes(unsigned slot) const {
    return slots_[slot].changes.load(std::memory_order_relaxed);
  }
  // Records that a key was inserted (1) or removed (-1).
  void count(unsigned slot, int64_t delta) {
    add(slots_[slot].size, static_cast<uint32_t>(delta));
    add(slots_[slot].changes, 1);
  }
  void reset() {
    for (auto& slot : slots_) {
      slot.size.store(0, std::memory_order_relaxed);
      add(slot.changes, 1);
    }
  }

 private:
  struct Slot {
    std::atomic<uint32_t> size = 0;
    std::atomic<uint32_t> changes = 0;
  };

  // Only one thread writes at a time; the atomic allows concurrent reads.
  static void add(std::atomic<uint32_t>& number, uint32_t delta) {
    number.store(number.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
  }

  std::array<Slot, kSlotCount> slots_{};
};

// Calls visit(const Entry&) for the keys of the slot in database 0, including expired keys, until
// visit() returns false. The visitor may only read and collect. If the function itself takes the
// stripe's lock, it releases the lock after each kSlotScanStep buckets. Then, as in SCAN, a key
// that is present during the whole walk is visited at least once. If no key of the slot is added or
// removed during the walk, the walk ends at the last key of the slot. Returns the number of buckets
// read. REQUIRES: keyspace.place_by_slot().
inline constexpr unsigned kSlotScanStep = 512;
template <class Visit>
uint64_t for_each_in_slot(Keyspace& keyspace, unsigned slot, Locking locking, Visit&& visit) {
  const unsigned index = stripe_of_slot(slot);
  const StripeMask mask = locking == Locking::kTake ? StripeMask{1} << index : 0;
  const SlotSizes& sizes = *keyspace.slot_sizes();
  uint64_t cursor = 0;
  uint64_t buckets = 0;
  bool wants_more = true;
  std::optional<uint32_t> changes;
  // The hashes of the visited keys. The set counts a key once, even if the walk visits it twice
  // because of a resize. If two keys have the same hash, the count stays below the number of keys,
  // and the walk reads all buckets.
  std::unordered_set<uint64_t> seen;
  do {
    const StripeLock guard = keyspace.lock(mask, LockMode::kShared);
    const Table* const table = keyspace.database_of_stripe(index, 0).table.get();
    const uint64_t size = sizes.at(slot);
    if (table == nullptr || size == 0) return buckets;
    if (!changes) changes = sizes.changes(slot);
    const bool is_same = *changes == sizes.changes(slot);
    for (unsigned step = 0; step < kSlotScanStep; ++step) {
      cursor = table->scan(cursor, [&](const Entry& entry) {
        if (!wants_more || slot_of(entry.key()) != slot) return;
        wants_more = visit(entry);
        seen.insert(keyspace.ref(entry.key()).hash);
      });
      ++buckets;
      const bool was_last = is_same && seen.size() >= size;
      if (cursor == 0 || !wants_more || was_last) return buckets;
    }
  } while (true);
}

}  // namespace core::keyspace
