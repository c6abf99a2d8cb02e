// SPDX-License-Identifier: MIT
#include "core/keyspace/table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/keyspace/key_hash.h"
#include "core/memory/allocation_size.h"
#include "core/prefetch.h"
#include "core/short_bytes.h"

namespace core::keyspace {

namespace {

// Load factor for growth, in quarters of an entry per bucket. A table grows above 5.25 entries per
// bucket. That is 75 % of the slots. At this load about one bucket in six has a chained child
// bucket. The table shrinks below 7/8 entry per bucket, to about 3.5 entries per bucket at most.
constexpr size_t kGrowQuarters = 21;
// Tables with this many buckets or fewer never shrink.
constexpr size_t kBucketsShrinkMin = 4;
// Maximum number of non-empty buckets that one write moves during a resize.
constexpr size_t kBucketsPerStep = 2;
// Maximum number of empty buckets that one write skips during a resize.
constexpr size_t kEmptyBucketsPerStep = 16;
// Bucket arrays of at least this size come from calloc, whose pages take no memory until they are
// used.
constexpr size_t kCallocBytesMin = size_t{1} << 20;
constexpr size_t kCacheLineBytes = 64;
// Number of positions in a bucket's chain among which random_entry() chooses.
constexpr uint64_t kRandomDepth = 16;

constexpr uint64_t kLowBits = 0x7F7F7F7F7F7F7F7FU;
constexpr uint64_t kEveryByte = 0x0101010101010101U;

}  // namespace

Table::~Table() {
  for_each([](Entry& entry) { EntryDeleter{}(&entry); });
  free_buckets(main_);
  free_buckets(next_);
}

// Allocates an array of `count` empty buckets. If the allocation fails, the result's count is 0.
Table::Buckets Table::allocate_buckets(size_t count) {
  const size_t size_bytes = count * sizeof(Bucket);
  Buckets buckets;
  if (size_bytes < kCallocBytesMin) {
    buckets.allocation = std::aligned_alloc(kCacheLineBytes, size_bytes);
    if (buckets.allocation == nullptr) return {};
    std::memset(buckets.allocation, 0, size_bytes);
    buckets.at = static_cast<Bucket*>(buckets.allocation);
  } else {
    buckets.allocation = std::calloc(size_bytes + kCacheLineBytes, 1);
    if (buckets.allocation == nullptr) return {};
    void* aligned = buckets.allocation;
    size_t space = size_bytes + kCacheLineBytes;
    buckets.at = static_cast<Bucket*>(std::align(kCacheLineBytes, size_bytes, aligned, space));
  }
  buckets.count = count;
  return buckets;
}

// Frees the array and the chained child buckets, but not the entries.
void Table::free_buckets(Buckets& buckets) {
  for (size_t i = 0; i < buckets.count; ++i) {
    for (Bucket* child = buckets.at[i].child(); child != nullptr;) {
      Bucket* next = child->child();
      delete child;
      child = next;
    }
  }
  std::free(buckets.allocation);
  buckets = Buckets{};
}

// Returns the only array that may contain the key, so that one chain is searched. During a resize
// it is next_ if the key's bucket of main_ has already been moved, else main_.
const Table::Buckets& Table::home(uint64_t hash) const {
  return is_resizing() && (hash & main_.mask()) < moved_ ? next_ : main_;
}

// Returns the slots of `bucket` that hold an entry with this tag: one bit in each slot's byte.
uint64_t Table::matching_slots(const Bucket& bucket, uint64_t hash) {
  uint64_t bytes;
  std::memcpy(&bytes, &bucket, sizeof(bytes));
  // Sets the high bit of each byte that equals the tag (Warren, "Hacker's Delight", 6-1). The
  // shifts clear the result's highest byte, because that byte of the bucket holds no tag.
  const uint64_t difference = bytes ^ (tag_of(hash) * kEveryByte);
  return ~(((difference & kLowBits) + kLowBits) | difference | kLowBits) << 8 >> 8;
}

[[gnu::always_inline]] inline Table::Place Table::locate(std::string_view key,
                                                         uint64_t hash) const {
  if (size_ == 0) return {};
  const Buckets& buckets = home(hash);
  Bucket* head = &buckets.at[hash & buckets.mask()];
  for (Bucket* bucket = head; bucket != nullptr; bucket = bucket->child()) {
    uint64_t matches = matching_slots(*bucket, hash);
    const unsigned used = bucket->used_slots();
    for (; matches != 0; matches &= matches - 1) {
      const unsigned slot = static_cast<unsigned>(std::countr_zero(matches)) / 8;
      if ((used >> slot & 1) != 0 && equal_bytes(bucket->entry(slot)->key(), key))
        return {head, bucket, slot};
    }
  }
  return {};
}

Entry* Table::find(std::string_view key, uint64_t hash) const {
  const Place place = locate(key, hash);
  return place.bucket == nullptr ? nullptr : place.bucket->entry(place.slot);
}

Entry& Table::insert(EntryPtr entry, uint64_t hash) {
  assert(find(entry->key(), hash) == nullptr);
  if (main_.count == 0) {
    main_ = allocate_buckets(1);
    if (main_.count == 0) throw std::bad_alloc();
  }
  resize_step();
  grow_if_needed();
  place(home(hash), entry.get(), hash);
  ++size_;
  return *entry.release();
}

EntryPtr Table::replace(EntryPtr entry, uint64_t hash) {
  const Place place = locate(entry->key(), hash);
  if (place.bucket == nullptr) {
    insert(std::move(entry), hash);
    return nullptr;
  }
  EntryPtr old(place.bucket->entry(place.slot));
  place.bucket->slots[place.slot] = entry.release();
  return old;
}

EntryPtr Table::erase(std::string_view key, uint64_t hash) {
  const Place place = locate(key, hash);
  if (place.bucket == nullptr) return nullptr;
  EntryPtr entry(place.bucket->entry(place.slot));
  remove(place);
  --size_;
  resize_step();
  shrink_if_needed();
  return entry;
}

inline const Entry* Table::probable_entry(uint64_t hash) const {
  const Buckets& buckets = home(hash);
  const Bucket& bucket = buckets.at[hash & buckets.mask()];
  const uint64_t matches = matching_slots(bucket, hash);
  if (matches == 0) return nullptr;
  // A removed entry leaves its tag and pointer in the slot, so a matching tag does not prove that
  // the slot holds an entry.
  const auto slot = static_cast<unsigned>(std::countr_zero(matches) / 8);
  return (bucket.used_slots() >> slot & 1) != 0 ? bucket.entry(slot) : nullptr;
}

void Table::prefetch(uint64_t hash, PrefetchStep step) const {
  if (size_ == 0) return;
  if (step == PrefetchStep::kBucket) {
    const Buckets& buckets = home(hash);
    return core::prefetch(&buckets.at[hash & buckets.mask()]);
  }
  const Entry* const entry = probable_entry(hash);
  if (entry == nullptr) return;
  step == PrefetchStep::kEntry ? core::prefetch(entry) : entry->prefetch_value();
}

Entry* Table::random_entry(std::mt19937_64& random) const {
  if (size_ == 0) return nullptr;
  // Draws (bucket, depth) pairs until one holds an entry, so all entries are equally likely.
  // Exceptions are entries of chains longer than kRandomDepth, which are rare.
  for (;;) {
    const uint64_t index = random() % bucket_count();
    const Bucket* head = index < main_.count ? &main_.at[index] : &next_.at[index - main_.count];
    uint64_t count = 0;
    visit_chain(head, [&](Entry&) { ++count; });
    if (count == 0) continue;
    uint64_t depth = random() % std::max(count, kRandomDepth);
    Entry* chosen = nullptr;
    visit_chain(head, [&](Entry& entry) {
      if (depth-- == 0) chosen = &entry;
    });
    if (chosen != nullptr) return chosen;
  }
}

size_t Table::memory_bytes() const {
  const size_t arrays = allocation_size(main_.count * sizeof(Bucket)) +
                        (is_resizing() ? allocation_size(next_.count * sizeof(Bucket)) : 0);
  return allocation_size(sizeof(Table)) + (main_.count == 0 ? 0 : arrays) +
         child_count_ * sizeof(Bucket);
}

void Table::place(const Buckets& buckets, Entry* entry, uint64_t hash) {
  Bucket* bucket = &buckets.at[hash & buckets.mask()];
  while (bucket->chained() && bucket->free_slots() == 0) bucket = bucket->child();
  if (bucket->free_slots() == 0) {
    auto* child = new Bucket{};
    ++child_count_;
    // The pointer to the child bucket takes the bucket's last slot. The entry that was in this slot
    // moves to the child bucket.
    child->set(0, bucket->entry(kSlots - 1), bucket->tags[kSlots - 1]);
    bucket->slots[kSlots - 1] = child;
    bucket->state = kChained | (kChildSlotBit - 1);
    bucket = child;
  }
  const auto slot = static_cast<unsigned>(std::countr_zero(bucket->free_slots()));
  bucket->set(slot, entry, tag_of(hash));
}

// Fills the removed entry's slot with the last entry of the chain. So only the last bucket of a
// chain can be partly empty. If a child bucket becomes empty, it is freed.
void Table::remove(const Place& place) {
  Bucket* parent = nullptr;
  Bucket* last = place.head;
  while (last->chained()) {
    parent = last;
    last = last->child();
  }
  auto slot = place.slot;
  if (last != place.bucket) {
    slot = static_cast<unsigned>(std::bit_width(unsigned{last->state})) - 1;
    place.bucket->set(place.slot, last->entry(slot), last->tags[slot]);
  }
  last->state = static_cast<uint8_t>(last->state & ~(1U << slot));
  if (last->state == 0 && parent != nullptr) {
    delete last;
    --child_count_;
    parent->state = kChildSlotBit - 1;
  }
}

// Moves one chain of buckets from main_ to next_. Terminates the process if 64 bytes for a new
// bucket cannot be allocated, because the function is noexcept.
void Table::move_chain(Bucket& head) noexcept {
  visit_chain(&head, [](const Entry& entry) { core::prefetch(&entry); });
  visit_chain(&head, [this](Entry& entry) { place(next_, &entry, hash_key(entry.key(), seed_)); });
  for (Bucket* child = head.child(); child != nullptr;) {
    Bucket* next = child->child();
    delete child;
    --child_count_;
    child = next;
  }
  head.state = 0;
}

void Table::resize_step() {
  if (!is_resizing()) return;
  size_t empty_left = kEmptyBucketsPerStep;
  for (size_t moved = 0; moved < kBucketsPerStep && moved_ < main_.count;) {
    Bucket& head = main_.at[moved_++];
    if (head.state != 0) {
      move_chain(head);
      ++moved;
    } else if (--empty_left == 0) {
      break;
    }
  }
  if (moved_ < main_.count) return;
  std::free(main_.allocation);
  main_ = std::exchange(next_, {});
  moved_ = 0;
}

void Table::reserve(size_t entry_count) {
  const size_t count = std::bit_ceil(entry_count * 4 / kGrowQuarters + 1);
  if (size_ != 0 || is_resizing() || count <= main_.count) return;
  Buckets buckets = allocate_buckets(count);
  if (buckets.count == 0) return;
  free_buckets(main_);
  main_ = buckets;
}

void Table::start_resize(size_t count) {
  // If the allocation fails, the table keeps its size. Its chains get longer, but it stays correct.
  next_ = allocate_buckets(count);
  moved_ = 0;
}

void Table::grow_if_needed() {
  if (!is_resizing() && size_ * 4 >= main_.count * kGrowQuarters) start_resize(main_.count * 2);
}

void Table::shrink_if_needed() {
  if (is_resizing() || main_.count <= kBucketsShrinkMin || size_ * 8 >= main_.count * 7) return;
  start_resize(std::bit_ceil(std::max<size_t>(1, size_ * 2 / 7)));
}

}  // namespace core::keyspace
