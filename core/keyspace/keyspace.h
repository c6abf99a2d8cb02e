// SPDX-License-Identifier: MIT
//
// Keyspace: all keys of all databases, divided into 64 stripes by key hash, or by slot in a
// cluster. Each stripe has one reader/writer lock and one Table per database.
//
// Invariants: a key's hash determines its stripe, which is the same in every database. If keys are
// placed by slot, the keys of a slot are in one stripe. While a stripe is unlocked, its tables
// agree with its counters of keys and expiries and with the key counts of database 0's slots.
// Thread safety: functions marked REQUIRES need the named StripeLock. The others take the locks
// they need, one stripe at a time, and must not be called by a thread that holds a stripe lock.
// Counters may be read from any thread at any time.
// Source: docs/architecture.md, "Concurrency".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/entry.h"
#include "core/keyspace/expiry_index.h"
#include "core/keyspace/key_hash.h"
#include "core/keyspace/locking.h"
#include "core/keyspace/rw_lock.h"
#include "core/keyspace/stripe_lock.h"
#include "core/keyspace/table.h"
#include "core/keyspace/watch.h"

namespace core::keyspace {

class Reclaimer;
class SlotSizes;

// A key's name with its hash, which Keyspace::ref() computes once per command. The name is a view.
struct KeyRef {
  std::string_view name;
  uint64_t hash = 0;
};

// The part of a database that belongs to one stripe.
struct Database {
  std::unique_ptr<Table> table;  // null until the first key is inserted
  std::atomic<uint64_t> size{0};
  std::atomic<uint64_t> expires{0};
  // Sum of expiry_part() over all keys with an expiry. The average TTL is computed from this sum.
  std::atomic<uint64_t> expiry_sum_ms{0};
  ExpiryIndex expiry_index;
};

// A stripe's lock and the data it guards: the tables, the watches and all writes to the counters.
struct alignas(128) Stripe {
  RwLock lock;
  std::unique_ptr<Database[]> databases;
  WatchTable watches;
};

// Tables that a flush has detached from the keyspace. The caller frees the tables later.
using DetachedTables = std::vector<std::unique_ptr<Table>>;

struct ScanOptions {
  uint64_t cursor = 0;
  size_t count = 10;  // approximate number of entries to visit per call
  Locking locking = Locking::kTake;
};

class Keyspace {
 public:
  // Called for every key deleted because it expired, under its stripe's exclusive lock. The command
  // that found the key continues afterwards, so the hook can journal the DEL first.
  using ExpiredHook = std::function<void(unsigned database, std::string_view key)>;

  Keyspace(unsigned database_count, uint64_t seed);
  ~Keyspace();
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;

  // Sets the hooks. `flushed` is called when all keys of one or of all databases are removed, with
  // all stripes locked. Must be called before other threads start.
  void set_hooks(ExpiredHook expired, std::function<void()> flushed = {}) {
    hooks_ = {std::move(expired), std::move(flushed)};
  }
  // `reclaimer` frees expired heavy values and must outlive the keyspace. If it is null, such
  // values are freed in place. Must be called before other threads start.
  void set_reclaimer(Reclaimer* reclaimer) { reclaimer_ = reclaimer; }

  unsigned database_count() const { return database_count_; }
  KeyRef ref(std::string_view name) const {
    const uint64_t hash = hash_key(name, seed_);
    if (slot_sizes_ != nullptr) [[unlikely]]
      return {name, hash_by_slot(hash, name)};
    return {name, hash};
  }

  // Places keys by slot. Must be called before the first key and before other threads start.
  void place_by_slot();
  // Number of keys in each slot of database 0; null if keys are placed by hash.
  const SlotSizes* slot_sizes() const { return slot_sizes_.get(); }

  static StripeMask mask_of(const KeyRef& key) { return StripeMask{1} << stripe_of(key.hash); }
  // With kSkip the result has an empty mask if this thread or another thread holds one of the
  // stripes in a mode that excludes `mode`.
  StripeLock lock(StripeMask mask, LockMode mode, StripeWait wait = StripeWait::kWait) {
    if (wait == StripeWait::kSkip) return StripeLock::try_take(stripes_.get(), mask, mode);
    return {stripes_.get(), mask, mode};
  }
  StripeLock lock_shared(const KeyRef& key) { return lock(mask_of(key), LockMode::kShared); }
  StripeLock lock_exclusive(const KeyRef& key) { return lock(mask_of(key), LockMode::kExclusive); }

  // Returns the RwLock::write_count() of the key's stripe. REQUIRES: the stripe is locked.
  uint64_t write_count(const KeyRef& key) const {
    return stripes_[stripe_of(key.hash)].lock.write_count();
  }

  // Functions on single keys. REQUIRES: the key's stripe is locked. A shared lock suffices for
  // find(), find_any() and the prefetch functions. The others, also find_for_write(), require the
  // exclusive lock. find() treats an expired entry as absent but does not delete it, because that
  // requires the exclusive lock.
  Entry* find(unsigned database, const KeyRef& key, int64_t now_ms) const {
    Entry* entry = find_any(database, key);
    return entry != nullptr && entry->expired(now_ms) ? nullptr : entry;
  }
  // Returns the entry even if it has expired.
  Entry* find_any(unsigned database, const KeyRef& key) const {
    const Table* table = slot(database, key).table.get();
    return table == nullptr ? nullptr : table->find(key.name, key.hash);
  }
  void prefetch(unsigned database, const KeyRef& key, PrefetchStep step) const {
    if (const Table* table = slot(database, key).table.get()) table->prefetch(key.hash, step);
  }
  // True if the key's stripe has so many keys that the database is probably larger than the caches.
  // Prefetching then pays off. Needs no lock.
  bool is_worth_prefetching(unsigned database, const KeyRef& key) const {
    constexpr uint64_t kStripeSizeMin = 128;
    return slot(database, key).size.load(std::memory_order_relaxed) >= kStripeSizeMin;
  }
  // Like find(), but deletes an expired entry by calling expire().
  Entry* find_for_write(unsigned database, const KeyRef& key, int64_t now_ms) {
    Entry* entry = find_any(database, key);
    if (entry == nullptr || !entry->expired(now_ms)) return entry;
    expire(database, key);
    return nullptr;
  }
  // Returns a new entry with the empty string. REQUIRES: the key is absent.
  Entry& insert(unsigned database, const KeyRef& key);
  // Inserts an existing entry with its expiry. Returns the entry it replaces, or null. REQUIRES:
  // entry->key() == key.name.
  EntryPtr put(unsigned database, const KeyRef& key, EntryPtr entry);
  // Makes room for `key_count` keys in an empty database, so that its tables need not grow in
  // steps. REQUIRES: all stripes are locked exclusively; database < database_count().
  void reserve(unsigned database, uint64_t key_count);
  // Removes the entry and returns it; null if the key is missing. The caller frees the entry after
  // it has unlocked the stripe.
  EntryPtr erase(unsigned database, const KeyRef& key);
  // Renames the entry of `from` to `to`, with its expiry. Returns the previous entry of `to`, or
  // null. REQUIRES: `from` exists and both stripes are locked.
  EntryPtr rename(unsigned database, const KeyRef& from, const KeyRef& to);
  // Changes the expiry of an entry and updates the counters. kNoExpiry removes the expiry.
  void set_expiry(unsigned database, const KeyRef& key, Entry& entry, int64_t expires_at_ms);

  // Functions on watches. REQUIRES: the key's stripe is locked exclusively. Each write command
  // calls notify_modified() for the keys it changed. The keyspace itself notifies only of expiry,
  // flush and swap. watch() returns true if `flag` did not watch the key before.
  bool watch(unsigned database, const KeyRef& key, WatchFlagPtr flag, int64_t now_ms);
  void unwatch(unsigned database, const KeyRef& key, const WatchFlagPtr& flag);
  void notify_modified(unsigned database, const KeyRef& key) {
    WatchTable& watches = stripe(key).watches;
    if (!watches.empty()) watches.mark_modified(database, key.name);
  }
  // True if the key was alive at WATCH and has expired since, but is not deleted yet. EXEC must
  // then fail. REQUIRES: the key's stripe is locked, at least shared.
  bool watched_key_expired(unsigned database, const KeyRef& key, const WatchFlagPtr& flag,
                           int64_t now_ms) const;

  // Counters. Expired entries count until they are deleted.
  uint64_t db_size(unsigned database) const;
  uint64_t expires_count(unsigned database) const;
  ExpiryStatistics& expiry_statistics() { return expiry_statistics_; }

  // Functions on whole databases. REQUIRES: all stripes are locked exclusively. Watchers of
  // existing keys are notified.
  DetachedTables flush(unsigned first, unsigned count = 1);
  DetachedTables flush_all() { return flush(0, database_count_); }
  // Swaps two databases. For a watcher, a key is absent before the swap if it is missing or had
  // expired at WATCH. It is absent after the swap if it is missing or has expired by `now_ms`.
  void swap(unsigned first, unsigned second, int64_t now_ms);

  // Calls visitor(const Entry&), also for expired entries, and returns the next cursor, 0 at the
  // end. An entry present during the whole iteration is visited at least once. The visitor runs
  // under the stripe's lock, so it may only read and collect. Slow work belongs in unlocked(),
  // which runs after each stripe's visits, without the lock that scan() took. Any cursor value is
  // valid.
  template <class Visitor, class Unlocked>
  uint64_t scan(unsigned database, const ScanOptions& options, Visitor&& visitor,
                Unlocked&& unlocked);
  template <class Visitor>
  uint64_t scan(unsigned database, const ScanOptions& options, Visitor&& visitor) {
    return scan(database, options, visitor, [] {});
  }
  // Returns the name of a random key that has not expired, with nearly equal probability; nullopt
  // if there is none. If an expired key is found on the way, its name is stored in `expired`.
  std::optional<std::string> random_key(unsigned database, std::mt19937_64& random, int64_t now_ms,
                                        Locking locking = Locking::kTake,
                                        std::string* expired = nullptr);
  // Calls visitor(Entry&) for every entry. REQUIRES: all stripes are locked, at least shared.
  template <class Visitor>
  void for_each(unsigned database, Visitor&& visitor) const;

  // Deletes an expired key: counts it, notifies its watchers and calls the hook. REQUIRES: the
  // key's stripe is locked exclusively.
  void expire(unsigned database, const KeyRef& key);
  // For active expiry. Calls expire() for expired keys, the earliest deadline first. Checks at most
  // `max` records of the index, and at most 64. Returns the number of deleted keys. REQUIRES: the
  // stripe is locked exclusively.
  size_t expire_due(unsigned stripe_index, unsigned database, int64_t now_ms, size_t max);
  // Returns the part of a database that lies in one stripe. REQUIRES: that stripe is locked, unless
  // the caller reads only the counters.
  const Database& database_of_stripe(unsigned stripe_index, unsigned database) const {
    return stripes_[stripe_index].databases[database];
  }

 private:
  Stripe& stripe(const KeyRef& key) const { return stripes_[stripe_of(key.hash)]; }
  Database& slot(unsigned database, const KeyRef& key) const {
    return stripe(key).databases[database];
  }

  const unsigned database_count_;
  const uint64_t seed_;
  std::unique_ptr<Stripe[]> stripes_;
  std::unique_ptr<SlotSizes> slot_sizes_;
  ExpiryStatistics expiry_statistics_;
  struct Hooks {
    ExpiredHook expired;
    std::function<void()> flushed;
  } hooks_;
  Reclaimer* reclaimer_ = nullptr;
};

// Returns the average remaining TTL of the keys with an expiry. Returns 0 if no key has an expiry,
// or if the average of the expiry times has passed. Expiry times after the year 2054 are averaged
// as if they were in 2054.
int64_t average_ttl_ms(const Keyspace& keyspace, unsigned database, int64_t now_ms);

// Bytes of all buckets, indexes and empty stripes, without the entries. REQUIRES: all stripes are
// locked.
size_t table_memory_bytes(const Keyspace& keyspace);

template <class Visitor, class Unlocked>
uint64_t Keyspace::scan(unsigned database, const ScanOptions& options, Visitor&& visitor,
                        Unlocked&& unlocked) {
  // The stripe number is in the low bits of a cursor, so that cursors are small numbers.
  auto index = static_cast<unsigned>(options.cursor % kStripeCount);
  uint64_t cursor = options.cursor / kStripeCount;
  size_t visited = 0;
  // Empty buckets of sparse tables also count as steps. Otherwise a scan could block its thread.
  size_t steps = 0;
  const auto done = [&] { return visited >= options.count || steps / 10 >= options.count; };
  for (; index < kStripeCount; ++index, cursor = 0) {
    const Database& share = stripes_[index].databases[database];
    if (share.size.load(std::memory_order_relaxed) == 0) continue;
    if (steps > 0 && done()) return cursor * kStripeCount + index;
    const bool take = options.locking == Locking::kTake;
    StripeLock guard = lock(take ? StripeMask{1} << index : 0, LockMode::kShared);
    if (share.table == nullptr) continue;
    do {
      cursor = share.table->scan(cursor, [&](const Entry& entry) {
        ++visited;
        visitor(entry);
      });
      ++steps;
    } while (cursor != 0 && !done());
    guard.unlock();
    unlocked();
    if (cursor != 0) return cursor * kStripeCount + index;
  }
  return 0;
}

template <class Visitor>
void Keyspace::for_each(unsigned database, Visitor&& visitor) const {
  for (unsigned i = 0; i < kStripeCount; ++i) {
    if (const Table* table = stripes_[i].databases[database].table.get()) table->for_each(visitor);
  }
}

}  // namespace core::keyspace
