// SPDX-License-Identifier: MIT
//
// Table: the hash table of one (database, stripe). A bucket is one cache line: seven entry
// pointers, a one-byte hash tag for each and an occupancy byte. So a lookup reads one bucket and
// one entry.
//
// Invariants: bucket counts are powers of two. During a resize, each write moves a few buckets from
// main_ to next_, always as whole chains. A bucket may have a child bucket for further entries. The
// pointer to the child bucket is then in its last slot.
// Thread safety: guarded by the stripe lock; const members may run under a shared lock.
// Source: buckets of one cache line as in Fan, Andersen, Kaminsky 2013 "MemC3". The scan cursor is
// Pieter Noordhuis' reverse-binary increment, which survives resizes by powers of two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/keyspace/key_hash.h"

namespace core::keyspace {

// The steps of prefetching a key, in order. Each step reads what the step before has fetched.
enum class PrefetchStep { kBucket, kEntry, kValue };
inline constexpr std::array kPrefetchSteps = {PrefetchStep::kBucket, PrefetchStep::kEntry,
                                              PrefetchStep::kValue};

class Table {
 public:
  // `seed` must be the seed of the callers' hashes, because a resize hashes keys again.
  explicit Table(uint64_t seed) : seed_(seed) {}
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  size_t size() const { return size_; }
  // If the table is empty, allocates buckets for `entry_count` entries. If the allocation fails,
  // nothing changes. REQUIRES: `entry_count` entries fit in the address space.
  void reserve(size_t entry_count);
  // The entry of `key`, or null.
  Entry* find(std::string_view key, uint64_t hash) const;
  // Calls visitor(Entry&) for a set of entries that includes all entries whose keys have this hash.
  // The visitor must not change the table.
  template <class Visitor>
  void for_each_candidate(uint64_t hash, Visitor&& visitor) const;
  // REQUIRES: no entry with that key is present.
  Entry& insert(EntryPtr entry, uint64_t hash);
  // Inserts `entry` in place of the entry with the same key, and returns the replaced entry. If no
  // entry has that key, inserts `entry` and returns null.
  EntryPtr replace(EntryPtr entry, uint64_t hash);
  // Removes and returns the entry; null if absent. The caller frees it after unlocking.
  EntryPtr erase(std::string_view key, uint64_t hash);
  // Prefetches the memory that is read at `step`: the bucket, the entry, or a value outside the
  // entry.
  void prefetch(uint64_t hash, PrefetchStep step) const;

  // Calls visitor(Entry&) for the entries of one cursor position and returns the next cursor, 0 at
  // the end. An entry present during a whole scan is visited at least once. Between the calls other
  // entries may be inserted or erased, and the table may be resized. The visitor must not change
  // the table. Any cursor value is valid.
  template <class Visitor>
  uint64_t scan(uint64_t cursor, Visitor&& visitor) const;
  // Calls visitor(Entry&) for every entry. The visitor must not change the table.
  template <class Visitor>
  void for_each(Visitor&& visitor) const;
  // Returns a random entry with nearly equal probability; null if the table is empty.
  Entry* random_entry(std::mt19937_64& random) const;

  // Bytes of the buckets, without the entries.
  size_t memory_bytes() const;
  bool is_resizing() const { return next_.count != 0; }
  size_t bucket_count() const { return main_.count + next_.count; }

 private:
  static constexpr unsigned kSlots = 7;
  // Bits of Bucket::state: one for each slot that holds an entry, and one if the last slot holds
  // the pointer to a child bucket.
  static constexpr unsigned kAllSlots = 0x7F;
  static constexpr unsigned kChildSlotBit = 0x40;
  static constexpr uint8_t kChained = 0x80;
  struct alignas(64) Bucket {
    std::array<uint8_t, kSlots> tags;
    uint8_t state;
    std::array<void*, kSlots> slots;

    bool chained() const { return (state & kChained) != 0; }
    bool has(unsigned slot) const { return (state >> slot & 1) != 0; }
    // Returns a mask with a bit set for each slot that holds an entry.
    unsigned used_slots() const {
      return unsigned{state} & (chained() ? kChildSlotBit - 1 : kAllSlots);
    }
    // Returns a mask with a bit set for each free slot.
    unsigned free_slots() const {
      return ~unsigned{state} & (chained() ? kChildSlotBit - 1 : kAllSlots);
    }
    Bucket* child() const { return chained() ? static_cast<Bucket*>(slots[kSlots - 1]) : nullptr; }
    Entry* entry(unsigned slot) const { return static_cast<Entry*>(slots[slot]); }
    void set(unsigned slot, Entry* entry, uint8_t tag) {
      slots[slot] = entry;
      tags[slot] = tag;
      state = static_cast<uint8_t>(state | 1U << slot);
    }
  };
  static_assert(sizeof(Bucket) == 64, "a bucket is one cache line");

  // An array of buckets whose count is a power of two. An unused array has count 0 and no memory.
  struct Buckets {
    Bucket* at = nullptr;
    void* allocation = nullptr;
    size_t count = 0;
    size_t mask() const { return count - 1; }
  };
  // The position of an entry: its bucket and its slot.
  struct Place {
    Bucket* head = nullptr;
    Bucket* bucket = nullptr;
    unsigned slot = 0;
  };

  static Buckets allocate_buckets(size_t count);
  static void free_buckets(Buckets& buckets);
  const Buckets& home(uint64_t hash) const;
  static uint64_t matching_slots(const Bucket& bucket, uint64_t hash);
  // Searches the home bucket for the first slot that has the tag of `hash`. Returns the entry in
  // that slot. Returns null if no slot has this tag, or if the first slot with this tag is free.
  // REQUIRES: size() > 0.
  const Entry* probable_entry(uint64_t hash) const;
  Place locate(std::string_view key, uint64_t hash) const;
  void place(const Buckets& buckets, Entry* entry, uint64_t hash);
  void remove(const Place& place);
  void move_chain(Bucket& head) noexcept;
  void resize_step();
  void start_resize(size_t count);
  void grow_if_needed();
  void shrink_if_needed();
  template <class Visitor>
  static void visit_chain(const Bucket* bucket, Visitor&& visitor);

  Buckets main_;
  Buckets next_;
  size_t moved_ = 0;  // buckets of main_ already moved to next_
  size_t size_ = 0;
  size_t child_count_ = 0;
  uint64_t seed_;
};

// Returns the next cursor of a scan. Increments the bits of `cursor` that are set in `mask`, with
// the carry from the highest bit to the lower bits.
inline uint64_t next_scan_cursor(uint64_t cursor, uint64_t mask) {
  // When the table grows, each bucket is divided into several buckets whose indices agree in the
  // low bits. The increment starts at the highest bit, so a scan visits these buckets
  // consecutively. So if the table is resized between two calls, the scan skips no bucket and need
  // not restart.
  const auto reverse = [](uint64_t bits) {
    bits = (bits >> 1 & 0x5555555555555555U) | (bits & 0x5555555555555555U) << 1;
    bits = (bits >> 2 & 0x3333333333333333U) | (bits & 0x3333333333333333U) << 2;
    bits = (bits >> 4 & 0x0F0F0F0F0F0F0F0FU) | (bits & 0x0F0F0F0F0F0F0F0FU) << 4;
    return __builtin_bswap64(bits);
  };
  return reverse(reverse(cursor | ~mask) + 1);
}

template <class Visitor>
void Table::visit_chain(const Bucket* bucket, Visitor&& visitor) {
  for (; bucket != nullptr; bucket = bucket->child()) {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      if (bucket->has(slot)) visitor(*bucket->entry(slot));
    }
  }
}

template <class Visitor>
void Table::for_each_candidate(uint64_t hash, Visitor&& visitor) const {
  if (size_ == 0) return;
  const Buckets& buckets = home(hash);
  const Bucket* bucket = &buckets.at[hash & buckets.mask()];
  for (; bucket != nullptr; bucket = bucket->child()) {
    const unsigned used = bucket->used_slots();
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      if ((used >> slot & 1) != 0 && bucket->tags[slot] == tag_of(hash)) {
        visitor(*bucket->entry(slot));
      }
    }
  }
}

template <class Visitor>
uint64_t Table::scan(uint64_t cursor, Visitor&& visitor) const {
  if (size_ == 0) return 0;
  if (!is_resizing()) {
    visit_chain(&main_.at[cursor & main_.mask()], visitor);
    return next_scan_cursor(cursor, main_.mask());
  }
  const Buckets& small = main_.count < next_.count ? main_ : next_;
  const Buckets& large = main_.count < next_.count ? next_ : main_;
  visit_chain(&small.at[cursor & small.mask()], visitor);
  // In the large array, the keys of this small bucket belong to the buckets whose indices have the
  // same low bits. The loop visits these buckets. It ends when the cursor's bits above the small
  // mask are all zero again.
  do {
    visit_chain(&large.at[cursor & large.mask()], visitor);
    cursor = next_scan_cursor(cursor, large.mask());
  } while ((cursor & (small.mask() ^ large.mask())) != 0);
  return cursor;
}

template <class Visitor>
void Table::for_each(Visitor&& visitor) const {
  for (const Buckets* buckets : {&main_, &next_}) {
    for (size_t i = 0; i < buckets->count; ++i) visit_chain(&buckets->at[i], visitor);
  }
}

}  // namespace core::keyspace
