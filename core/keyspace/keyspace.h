// SPDX-License-Identifier: MIT
//
// Keyspace: all keys of all databases, cut into 64 stripes by key hash, or by slot for a cluster.
// Each stripe has one reader/writer lock and one Table per database.
//
// Invariants: a key's hash decides its stripe, in every database the same; by slot, the keys of one
// slot lie in one stripe. Size and expiry counters, and those of database 0's slots, equal what the
// tables hold whenever the stripe is unlocked.
// Thread safety: functions marked REQUIRES need the named StripeLock; the others take the locks
// they need, one stripe at a time, and must not be called by a thread that holds any. Counters may
// be read from any thread at any time.
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

// A key's name with its hash, made once per command by Keyspace::ref. The name is a view.
struct KeyRef {
  std::string_view name;
  uint64_t hash = 0;
};

// One database's share of a stripe.
struct Database {
  std::unique_ptr<Table> table;  // null until the first key
  std::atomic<uint64_t> size{0};
  std::atomic<uint64_t> expires{0};
  // Sum of the expiries as expiry_part() counts them: for averages.
  std::atomic<uint64_t> expiry_sum_ms{0};
  ExpiryIndex expiry_index;
};

// One lock and what it guards: tables, counters (writes) and watches of the stripe.
struct alignas(128) Stripe {
  RwLock lock;
  std::unique_ptr<Database[]> databases;
  WatchTable watches;
};

// Tables taken out of the keyspace by a flush, to be freed by whoever has the time.
using DetachedTables = std::vector<std::unique_ptr<Table>>;

struct ScanOptions {
  uint64_t cursor = 0;
  size_t count = 10;  // about how many entries to visit before returning
  Locking locking = Locking::kTake;
};

class Keyspace {
 public:
  // Called for every key deleted because it expired, under its stripe's exclusive lock, before
  // the command that found it goes on: the place to journal the DEL.
  using ExpiredHook = std::function<void(unsigned database, std::string_view key)>;

  Keyspace(unsigned database_count, uint64_t seed);
  ~Keyspace();
  Keyspace(const Keyspace&) = delete;
  Keyspace& operator=(const Keyspace&) = delete;

  // Called when all keys of a database, or of all, are taken out, under all stripes.
  using FlushedHook = std::function<void()>;

  // To be set before other threads start.
  void set_hooks(ExpiredHook expired, FlushedHook flushed = {}) {
    hooks_ = {std::move(expired), std::move(flushed)};
  }
  // Where expired heavy values are freed; null frees them in place. Must outlive the keyspace.
  void set_reclaimer(Reclaimer* reclaimer) { reclaimer_ = reclaimer; }

  unsigned database_count() const { return database_count_; }
  KeyRef ref(std::string_view name) const {
    const uint64_t hash = hash_key(name, seed_);
    if (slot_sizes_ != nullptr) [[unlikely]]
      return {name, hash_by_slot(hash, name)};
    return {name, hash};
  }

  // By slot, from the start: to be called before the first key and before other threads start.
  void place_by_slot();
  // Of database 0; null where keys are placed by hash.
  const SlotSizes* slot_sizes() const { return slot_sizes_.get(); }

  // Locks.
  static StripeMask mask_of(const KeyRef& key) { return StripeMask{1} << stripe_of(key.hash); }
  // With kSkip the mask of the answer is empty when one of the stripes is held in another way.
  StripeLock lock(StripeMask mask, LockMode mode, StripeWait wait = StripeWait::kWait) {
    if (wait == StripeWait::kSkip) return StripeLock::try_take(stripes_.get(), mask, mode);
    return {stripes_.get(), mask, mode};
  }
  StripeLock lock_shared(const KeyRef& key) { return lock(mask_of(key), LockMode::kShared); }
  StripeLock lock_exclusive(const KeyRef& key) { return lock(mask_of(key), LockMode::kExclusive); }

  // Single keys. REQUIRES: the key's stripe, shared for find and prefetch, else exclusive.
  // An expired entry counts as absent but stays: deleting it needs the exclusive lock.
  Entry* find(unsigned database, const KeyRef& key, int64_t now_ms) const {
    Entry* entry = find_any(database, key);
    return entry != nullptr && entry->expired(now_ms) ? nullptr : entry;
  }
  // The entry even when it has expired.
  Entry* find_any(unsigned database, const KeyRef& key) const {
    const Table* table = slot(database, key).table.get();
    return table == nullptr ? nullptr : table->find(key.name, key.hash);
  }
  void prefetch(unsigned database, const KeyRef& key) const {
    if (const Table* table = slot(database, key).table.get()) table->prefetch(key.hash);
  }
  // The next step ahead of find(): the entry itself.
  void prefetch_entry(unsigned database, const KeyRef& key) const {
    if (const Table* table = slot(database, key).table.get()) table->prefetch_entry(key.hash);
  }
  // The step after that: the value.
  void prefetch_value(unsigned database, const KeyRef& key) const {
    if (const Table* table = slot(database, key).table.get()) table->prefetch_value(key.hash);
  }
  // Whether the database is too big for the caches, so that asking ahead pays. No lock needed.
  bool is_worth_prefetching(unsigned database, const KeyRef& key) const {
    constexpr uint64_t kStripeSizeMin = 128;
    return slot(database, key).size.load(std::memory_order_relaxed) >= kStripeSizeMin;
  }
  // As find, but deletes an expired entry: counted, its watchers told, the hook called.
  Entry* find_for_write(unsigned database, const KeyRef& key, int64_t now_ms) {
    Entry* entry = find_any(database, key);
    if (entry == nullptr || !entry->expired(now_ms)) return entry;
    expire(database, key);
    return nullptr;
  }
  // A new entry holding the empty string. REQUIRES: the key is absent.
  Entry& insert(unsigned database, const KeyRef& key);
  // Puts in an entry made elsewhere, expiry included; returns the one it replaces, or null.
  // REQUIRES: entry->key() == key.name.
  EntryPtr put(unsigned database, const KeyRef& key, EntryPtr entry);
  // Makes room for so many keys, where there are none yet: the tables need not grow by steps.
  // REQUIRES: all stripes, exclusive; database < database_count().
  void reserve(unsigned database, uint64_t key_count);
  // Takes the entry out, or null; drop it after unlocking.
  EntryPtr erase(unsigned database, const KeyRef& key);
  // Gives the entry of `from` the name `to`, expiry included; returns what `to` held before, or
  // null. REQUIRES: `from` exists and both stripes are locked.
  EntryPtr rename(unsigned database, const KeyRef& from, const KeyRef& to);
  // kNoExpiry takes the expiry away.
  void set_expiry(unsigned database, const KeyRef& key, Entry& entry, int64_t expires_at_ms);

  // Watches. REQUIRES: the key's stripe, exclusive. Each write command calls notify_modified for
  // the keys it changed; only expiry, flush and swap are told by the keyspace itself.
  // watch() tells whether `flag` watches the key only now.
  bool watch(unsigned database, const KeyRef& key, WatchFlagPtr flag, int64_t now_ms);
  void unwatch(unsigned database, const KeyRef& key, const WatchFlagPtr& flag);
  void notify_modified(unsigned database, const KeyRef& key) {
    WatchTable& watches = stripe(key).watches;
    if (!watches.empty()) watches.mark_modified(database, key.name);
  }
  // True when the key, alive at WATCH, has expired since but is not deleted yet: EXEC must fail.
  // REQUIRES: the key's stripe, shared.
  bool watched_key_expired(unsigned database, const KeyRef& key, const WatchFlagPtr& flag,
                           int64_t now_ms) const;

  // Counters. Expired entries count until they are deleted.
  uint64_t db_size(unsigned database) const;
  uint64_t expires_count(unsigned database) const;
  ExpiryStatistics& expiry_statistics() { return expiry_statistics_; }

  // Whole databases. REQUIRES: all stripes, exclusive. Watchers of existing keys are told.
  DetachedTables flush(unsigned database);
  DetachedTables flush_all();
  // A key that has expired by `now_ms` counts as absent on either side.
  void swap(unsigned first, unsigned second, int64_t now_ms);

  // Calls visitor(const Entry&), expired ones included, and returns the next cursor, 0 at the end.
  // An entry present during the whole iteration is visited at least once. The visitor runs under
  // the stripe's lock: it may only look and collect. What takes longer is for unlocked(), which
  // runs after each stripe's visits, without its lock. Any cursor value is safe.
  template <class Visitor, class Unlocked>
  uint64_t scan(unsigned database, const ScanOptions& options, Visitor&& visitor,
                Unlocked&& unlocked);
  template <class Visitor>
  uint64_t scan(unsigned database, const ScanOptions& options, Visitor&& visitor) {
    return scan(database, options, visitor, [] {});
  }
  // The name of some key that has not expired, about fairly; nothing when there is none.
  // `expired` gets the name of a key that it has met and that has expired, if any.
  std::optional<std::string> random_key(unsigned database, std::mt19937_64& random, int64_t now_ms,
                                        Locking locking = Locking::kTake,
                                        std::string* expired = nullptr);
  // Calls visitor(Entry&) for every entry. REQUIRES: all stripes, at least shared.
  template <class Visitor>
  void for_each(unsigned database, Visitor&& visitor) const;

  // Deletes a key whose time has come, as find_for_write would have. REQUIRES: the key's stripe,
  // exclusive.
  void expire(unsigned database, const KeyRef& key);
  // For active expiry. Deletes keys whose time has come, as find_for_write would have, the earliest
  // first. Looks at `max` records of the index at most; returns the number of deleted keys.
  // REQUIRES: the stripe, exclusive.
  size_t expire_due(unsigned stripe_index, unsigned database, int64_t now_ms, size_t max);
  // One database's share of one stripe. REQUIRES: that stripe's lock, but for the counters.
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
    FlushedHook flushed;
  } hooks_;
  Reclaimer* reclaimer_ = nullptr;
};

// How long the keys of a database that expire still have on average; 0 without any, or when they
// are overdue. An expiry after 2054 counts as one in 2054.
int64_t average_ttl_ms(const Keyspace& keyspace, unsigned database, int64_t now_ms);

// Bytes of all buckets, indexes and empty stripes, without the entries. REQUIRES: all stripes.
size_t table_memory_bytes(const Keyspace& keyspace);

template <class Visitor, class Unlocked>
uint64_t Keyspace::scan(unsigned database, const ScanOptions& options, Visitor&& visitor,
                        Unlocked&& unlocked) {
  // The stripe sits in the low bits, so that cursors stay short numbers.
  auto index = static_cast<unsigned>(options.cursor % kStripeCount);
  uint64_t cursor = options.cursor / kStripeCount;
  size_t visited = 0;
  // Sparse tables have many empty buckets: they count too, or a scan could hold up its thread.
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
