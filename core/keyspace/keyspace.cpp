// SPDX-License-Identifier: MIT
#include "core/keyspace/keyspace.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>
#include <utility>

#include "core/keyspace/reclaimer.h"
#include "core/keyspace/slot_keys.h"

namespace core::keyspace {

namespace {

// 2020-01-01, the start of the range of expiries that are summed. The range ends in 2054, so that
// the sum of 16 million expiries fits into 64 bits.
constexpr int64_t kExpirySumOrigin = 1'577'836'800'000;
constexpr int64_t kExpirySumMax = int64_t{1} << 40;
// Number of keys that random_key() draws at random before it scans for a live key.
constexpr int kRandomDrawsMax = 100;

// The writer holds the stripe exclusively, so load and store need not be one operation. The counter
// is atomic only for threads that read it without the lock.
void adjust(std::atomic<uint64_t>& counter, int64_t delta) {
  const uint64_t value = counter.load(std::memory_order_relaxed);
  counter.store(value + static_cast<uint64_t>(delta), std::memory_order_relaxed);
}

uint64_t sum_of(const Keyspace& keyspace, unsigned database,
                std::atomic<uint64_t> Database::*counter) {
  uint64_t total = 0;
  for (unsigned i = 0; i < kStripeCount; ++i) {
    const Database& share = keyspace.database_of_stripe(i, database);
    total += (share.*counter).load(std::memory_order_relaxed);
  }
  return total;
}

template <class Number>
void swap_counters(std::atomic<Number>& first, std::atomic<Number>& second) {
  const Number value = first.load(std::memory_order_relaxed);
  first.store(second.load(std::memory_order_relaxed), std::memory_order_relaxed);
  second.store(value, std::memory_order_relaxed);
}

// Updates the counters for a key that was inserted (1) or removed (-1). `slots` may be null.
void count_key(Database& share, SlotSizes* slots, const KeyRef& key, int64_t delta) {
  adjust(share.size, delta);
  if (slots != nullptr) [[unlikely]]
    slots->count(slot_of_hash(key.hash), delta);
}

// Returns the latest expiry of the keys with this hash; nullopt if none of them has an expiry.
std::optional<int64_t> latest_expiry(const Keyspace& keyspace, const Database& share,
                                     uint64_t hash) {
  std::optional<int64_t> latest_ms;
  if (share.table == nullptr) return latest_ms;
  share.table->for_each_candidate(hash, [&](const Entry& entry) {
    if (!entry.has_expiry() || keyspace.ref(entry.key()).hash != hash) return;
    latest_ms = std::max(latest_ms.value_or(0), entry.expires_at_ms());
  });
  return latest_ms;
}

// Returns the amount that an expiry adds to Database::expiry_sum_ms; 0 for a key without an expiry.
uint64_t expiry_part(int64_t expires_at_ms) {
  if (expires_at_ms == kNoExpiry) return 0;
  return static_cast<uint64_t>(
      std::clamp<int64_t>(expires_at_ms - kExpirySumOrigin, 0, kExpirySumMax));
}

// Updates counters and index for a changed expiry. kNoExpiry means no expiry, or no key.
void account_expiry(const Keyspace& keyspace, Database& share, uint64_t hash, int64_t before_ms,
                    int64_t after_ms) {
  if (before_ms == after_ms) return;
  adjust(share.expires, int{after_ms != kNoExpiry} - int{before_ms != kNoExpiry});
  adjust(share.expiry_sum_ms, static_cast<int64_t>(expiry_part(after_ms) - expiry_part(before_ms)));
  if (after_ms != kNoExpiry) {
    // If the expiry became later, the record with the earlier deadline suffices, so no record is
    // added.
    if (before_ms != kNoExpiry && before_ms <= after_ms) return;
    share.expiry_index.add(after_ms, hash);
  }
  share.expiry_index.purge(share.expires.load(std::memory_order_relaxed),
                           [&](uint64_t other) { return latest_expiry(keyspace, share, other); });
}

Table& table_for_insert(Database& share, uint64_t seed) {
  if (share.table == nullptr) share.table = std::make_unique<Table>(seed);
  return *share.table;
}

const Entry* find_in(const Stripe& stripe, unsigned database, std::string_view name,
                     uint64_t hash) {
  const Table* table = stripe.databases[database].table.get();
  return table == nullptr ? nullptr : table->find(name, hash);
}

// Notifies watchers of keys in `database`, all of which are about to be deleted.
void mark_flushed(const Keyspace& keyspace, Stripe& stripe, unsigned database) {
  stripe.watches.for_each_key(database, [&](std::string_view name) {
    if (find_in(stripe, database, name, keyspace.ref(name).hash) == nullptr) return;
    stripe.watches.mark_expired(database, name);
  });
}

// Notifies watchers of keys in `database` whose values are about to be replaced by those of
// `other`.
void mark_swapped(const Keyspace& keyspace, Stripe& stripe, unsigned database, unsigned other,
                  int64_t now_ms) {
  stripe.watches.for_each_key(database, [&](std::string_view name) {
    const uint64_t hash = keyspace.ref(name).hash;
    const Entry* const before = find_in(stripe, database, name, hash);
    const Entry* const after = find_in(stripe, other, name, hash);
    if (before == nullptr && after == nullptr) return;
    const bool is_stale = after != nullptr && after->expired(now_ms);
    stripe.watches.mark_swapped(database, name, {before != nullptr, after != nullptr, is_stale});
  });
}

// Moves all tables of a database to `out`, and notifies watchers.
void detach_tables(const Keyspace& keyspace, std::span<Stripe> stripes, unsigned database,
                   DetachedTables& out) {
  for (Stripe& stripe : stripes) {
    if (!stripe.watches.empty()) mark_flushed(keyspace, stripe, database);
    Database& share = stripe.databases[database];
    if (share.table != nullptr) out.push_back(std::move(share.table));
    share.size.store(0, std::memory_order_relaxed);
    share.expires.store(0, std::memory_order_relaxed);
    share.expiry_sum_ms.store(0, std::memory_order_relaxed);
    share.expiry_index.clear();
  }
}

// Scans the database and returns the first key found that has not expired; nullopt if there is
// none. Called when nearly all keys have expired.
std::optional<std::string> first_live_key(Keyspace& keyspace, unsigned database, int64_t now_ms,
                                          Locking locking) {
  std::optional<std::string> found;
  ScanOptions options{.cursor = 0, .count = 100, .locking = locking};
  do {
    options.cursor = keyspace.scan(database, options, [&](const Entry& entry) {
      if (!found && !entry.expired(now_ms)) found.emplace(entry.key());
    });
  } while (options.cursor != 0 && !found);
  return found;
}

}  // namespace

Keyspace::Keyspace(unsigned database_count, uint64_t seed)
    : database_count_(database_count),
      seed_(seed),
      stripes_(std::make_unique<Stripe[]>(kStripeCount)) {
  for (unsigned i = 0; i < kStripeCount; ++i) {
    stripes_[i].databases = std::make_unique<Database[]>(database_count);
  }
}

Keyspace::~Keyspace() = default;

void Keyspace::place_by_slot() {
  slot_sizes_ = std::make_unique<SlotSizes>();
}

Entry& Keyspace::insert(unsigned database, const KeyRef& key) {
  Database& share = slot(database, key);
  Entry& entry = table_for_insert(share, seed_).insert(Entry::create(key.name), key.hash);
  count_key(share, database == 0 ? slot_sizes_.get() : nullptr, key, 1);
  return entry;
}

void Keyspace::reserve(unsigned database, uint64_t key_count) {
  const uint64_t share_count = key_count / kStripeCount;
  if (share_count == 0) return;
  for (unsigned i = 0; i < kStripeCount; ++i) {
    table_for_insert(stripes_[i].databases[database], seed_).reserve(share_count);
  }
}

EntryPtr Keyspace::put(unsigned database, const KeyRef& key, EntryPtr entry) {
  assert(entry->key() == key.name);
  Database& share = slot(database, key);
  const int64_t expires_at_ms = entry->expires_at_ms();
  EntryPtr old = table_for_insert(share, seed_).replace(std::move(entry), key.hash);
  if (old == nullptr) count_key(share, database == 0 ? slot_sizes_.get() : nullptr, key, 1);
  account_expiry(*this, share, key.hash, old == nullptr ? kNoExpiry : old->expires_at_ms(),
                 expires_at_ms);
  return old;
}

EntryPtr Keyspace::erase(unsigned database, const KeyRef& key) {
  Database& share = slot(database, key);
  if (share.table == nullptr) return nullptr;
  EntryPtr entry = share.table->erase(key.name, key.hash);
  if (entry == nullptr) return nullptr;
  count_key(share, database == 0 ? slot_sizes_.get() : nullptr, key, -1);
  account_expiry(*this, share, key.hash, entry->expires_at_ms(), kNoExpiry);
  return entry;
}

EntryPtr Keyspace::rename(unsigned database, const KeyRef& from, const KeyRef& to) {
  EntryPtr entry = erase(database, from);
  assert(entry != nullptr);
  return put(database, to, Entry::with_key(std::move(entry), to.name));
}

void Keyspace::set_expiry(unsigned database, const KeyRef& key, Entry& entry,
                          int64_t expires_at_ms) {
  const int64_t before_ms = entry.expires_at_ms();
  entry.set_expires_at_ms(expires_at_ms);
  account_expiry(*this, slot(database, key), key.hash, before_ms, expires_at_ms);
}

size_t Keyspace::expire_due(unsigned stripe_index, unsigned database, int64_t now_ms, size_t max) {
  constexpr size_t kBatchMax = 64;
  Database& share = stripes_[stripe_index].databases[database];
  std::array<uint64_t, kBatchMax> due;
  size_t count = 0;
  for (max = std::min(max, kBatchMax); count < max; ++count) {
    const auto hash = share.expiry_index.take_due(now_ms);
    if (!hash) break;
    due[count] = *hash;
  }
  if (share.table == nullptr) return 0;
  const auto all = std::span(due).first(count);
  for (const uint64_t hash : all) share.table->prefetch(hash, PrefetchStep::kBucket);
  for (const uint64_t hash : all) share.table->prefetch(hash, PrefetchStep::kEntry);
  size_t expired = 0;
  std::vector<const Entry*> doomed;
  for (const uint64_t hash : all) {
    doomed.clear();
    share.table->for_each_candidate(hash, [&](const Entry& entry) {
      if (!entry.has_expiry() || ref(entry.key()).hash != hash) return;
      if (entry.expired(now_ms)) return doomed.push_back(&entry);
      share.expiry_index.add(entry.expires_at_ms(), hash);
    });
    for (const Entry* entry : doomed) expire(database, {entry->key(), hash});
    expired += doomed.size();
  }
  return expired;
}

void Keyspace::expire(unsigned database, const KeyRef& key) {
  // Keeps the entry alive until the end of the function, because key.name may be a view of it.
  EntryPtr entry = erase(database, key);
  if (entry == nullptr) return;
  expiry_statistics_.expired.fetch_add(1, std::memory_order_relaxed);
  WatchTable& watches = stripe(key).watches;
  if (!watches.empty()) watches.mark_expired(database, key.name);
  if (hooks_.expired) hooks_.expired(database, key.name);
  if (reclaimer_ != nullptr) reclaimer_->drop(std::move(entry));
}

bool Keyspace::watch(unsigned database, const KeyRef& key, WatchFlagPtr flag, int64_t now_ms) {
  const Entry* entry = find_any(database, key);
  const bool was_expired = entry != nullptr && entry->expired(now_ms);
  return stripe(key).watches.add(database, key.name, std::move(flag), was_expired);
}

void Keyspace::unwatch(unsigned database, const KeyRef& key, const WatchFlagPtr& flag) {
  stripe(key).watches.remove(database, key.name, flag);
}

bool Keyspace::watched_key_expired(unsigned database, const KeyRef& key, const WatchFlagPtr& flag,
                                   int64_t now_ms) const {
  const Entry* entry = find_any(database, key);
  return entry != nullptr && entry->expired(now_ms) &&
         stripe(key).watches.watches_alive(database, key.name, flag);
}

uint64_t Keyspace::db_size(unsigned database) const {
  return sum_of(*this, database, &Database::size);
}

uint64_t Keyspace::expires_count(unsigned database) const {
  return sum_of(*this, database, &Database::expires);
}

DetachedTables Keyspace::flush(unsigned first, unsigned count) {
  DetachedTables tables;
  for (unsigned database = first; database < first + count; ++database) {
    detach_tables(*this, {stripes_.get(), kStripeCount}, database, tables);
  }
  if (first == 0 && slot_sizes_ != nullptr) slot_sizes_->reset();
  if (hooks_.flushed) hooks_.flushed();
  return tables;
}

void Keyspace::swap(unsigned first, unsigned second, int64_t now_ms) {
  if (first == second) return;
  for (unsigned i = 0; i < kStripeCount; ++i) {
    Stripe& current = stripes_[i];
    if (!current.watches.empty()) {
      mark_swapped(*this, current, first, second, now_ms);
      mark_swapped(*this, current, second, first, now_ms);
    }
    Database& one = current.databases[first];
    Database& two = current.databases[second];
    std::swap(one.table, two.table);
    swap_counters(one.size, two.size);
    swap_counters(one.expires, two.expires);
    swap_counters(one.expiry_sum_ms, two.expiry_sum_ms);
    one.expiry_index.swap(two.expiry_index);
  }
  if (slot_sizes_ == nullptr) return;
  slot_sizes_->reset();
  for_each(0, [this](const Entry& entry) { slot_sizes_->count(slot_of(entry.key()), 1); });
}

std::optional<std::string> Keyspace::random_key(unsigned database, std::mt19937_64& random,
                                                int64_t now_ms, Locking locking,
                                                std::string* expired) {
  const bool take = locking == Locking::kTake;
  for (int draw = 0; draw < kRandomDrawsMax; ++draw) {
    const uint64_t size = db_size(database);
    if (size == 0) return std::nullopt;
    // A stripe is chosen with a probability proportional to its number of keys.
    uint64_t nth = random() % size;
    unsigned index = 0;
    for (; index + 1 < kStripeCount; ++index) {
      const auto& counter = stripes_[index].databases[database].size;
      const uint64_t in_stripe = counter.load(std::memory_order_relaxed);
      if (nth < in_stripe) break;
      nth -= in_stripe;
    }
    const StripeLock guard = lock(take ? StripeMask{1} << index : 0, LockMode::kShared);
    const Table* table = stripes_[index].databases[database].table.get();
    const Entry* entry = table == nullptr ? nullptr : table->random_entry(random);
    if (entry == nullptr) continue;
    if (!entry->expired(now_ms)) return std::string(entry->key());
    if (expired != nullptr) expired->assign(entry->key());
  }
  return first_live_key(*this, database, now_ms, locking);
}

int64_t average_ttl_ms(const Keyspace& keyspace, unsigned database, int64_t now_ms) {
  const uint64_t count = keyspace.expires_count(database);
  double sum_ms = 0;
  for (unsigned i = 0; i < kStripeCount; ++i) {
    const Database& share = keyspace.database_of_stripe(i, database);
    sum_ms += static_cast<double>(share.expiry_sum_ms.load(std::memory_order_relaxed));
  }
  if (count == 0) return 0;
  const auto average_ms = static_cast<int64_t>(sum_ms / static_cast<double>(count));
  return std::max<int64_t>(0, average_ms + kExpirySumOrigin - now_ms);
}

size_t table_memory_bytes(const Keyspace& keyspace) {
  const unsigned database_count = keyspace.database_count();
  size_t total = kStripeCount * (sizeof(Stripe) + database_count * sizeof(Database));
  for (unsigned i = 0; i < kStripeCount; ++i) {
    for (unsigned database = 0; database < database_count; ++database) {
      const Database& share = keyspace.database_of_stripe(i, database);
      if (share.table != nullptr) total += share.table->memory_bytes();
      total += share.expiry_index.memory_bytes();
    }
  }
  return total;
}

}  // namespace core::keyspace
